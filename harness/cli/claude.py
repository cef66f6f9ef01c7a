"""`harness claude`: the interactive Claude Code CLI in a sandbox, with the judge outside."""

import sys
from pathlib import Path

import click

from harness.cli.output import environment, json_option, project_option, sandbox_for, tell
from harness.cli.person import require_person
from harness.cli.reading import reading
from harness.driver.environment import bundled_cli
from harness.judge.beside import beside
from harness.judge.confinement import found_cli
from harness.judge.session import run_claude


@click.command("claude", context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "bwrap", "landlock"]),
    default="auto",
    help="Which sandbox; without one, plain `claude` is that mode.",
)
@project_option
@json_option
def command(arguments: tuple[str, ...], sandbox: str, project: Path, as_json: bool) -> None:
    """Start Claude Code in a sandbox; ARGUMENTS go to it as they are, e.g. `--resume`.

    Inside, `harness ...` and the agents' tools are requests to a judge outside, which trains,
    evaluates and judges. Scores of such a session are not lowered by it. The CLI is the `claude` on
    PATH, else the one of the Agent SDK; its exit code is ours. --json changes nothing.
    """
    require_person("claude", environment(), needs_terminal=False)
    with reading(project) as opened:
        opened.ledger.require_imported()
        chosen = sandbox_for(sandbox, required=True)
        others = beside(opened)
        for line in others:
            tell(f"harness: {line}")
        code = run_claude(
            opened,
            chosen,
            found_cli() or bundled_cli(),
            arguments,
            environment(),
            others,
        )
    sys.exit(code)
