"""`harness demo [DIR]`: the whole workflow, offline and without an API key."""

import sys
from pathlib import Path
from typing import Any

import click

from harness.cli.output import emit, environment, json_option, print_event, sandbox_option
from harness.cli.person import agent_marks
from harness.demo.run import free_directory, run_demo
from harness.domain.grade import OPEN, PERSON
from harness.domain.launch_options import RAY, SLURM


@click.command("demo")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), required=False)
@click.option(
    "--seed", type=int, default=None, help="Seed of the held-out data; default: a fresh one."
)
@click.option(
    "--launcher",
    type=click.Choice([SLURM, RAY]),
    default=None,
    help="Where the seeds train; default: here, one after another.",
)
@sandbox_option
@json_option
def command(
    directory: Path | None,
    seed: int | None,
    launcher: str | None,
    sandbox: str,
    as_json: bool,
) -> None:
    """Run four experiments in DIRECTORY (default: ./demo-project); one is kept.

    A script plays the agents through the real Claude Code CLI. Training, scoring and gates are
    real.
    """
    target = directory or free_directory(Path("demo-project"))
    summary: dict[str, Any] = run_demo(
        target,
        sandbox=sandbox,
        launcher=launcher,
        seed=seed,
        environment=environment(),
        caller=OPEN if agent_marks(environment()) else PERSON,
        on_progress=print_event,
    )
    emit(summary, summary["text"], as_json=as_json)
    sys.exit(0 if summary["target_hit"] else 1)
