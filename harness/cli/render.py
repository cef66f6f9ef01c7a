"""`harness render`: write the files that derive from the contract and the templates."""

import sys
from pathlib import Path

import click

from harness.cli.changing import changing
from harness.cli.output import emit, environment, json_option, project_option, tell
from harness.cli.person import HUMAN, caller
from harness.errors import NotFoundError
from harness.guard.accepted import accept_on_record, read_accepted
from harness.rendering.policy_snapshot import other_state, write_policy_snapshot
from harness.rendering.render import render
from harness.settings import CONFIG, find_root


@click.command("render")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a rendered file differs.")
@project_option
@json_option
def command(check: bool, project: Path, as_json: bool) -> None:
    """Render agents and slash commands from the contract, and the policy snapshot for the hooks.

    In the harness's own repository also the plugin and its settings.
    """
    root = _root(project)
    differing = []
    if not check and (root / CONFIG).exists():
        # The snapshot comes first: hooks deny every call without it, even if rendering fails.
        with changing(root, deriving=True) as opened:
            snapshot = opened.layout.shown(write_policy_snapshot(opened))
            if other := other_state(opened.layout):
                tell(
                    f"harness: {snapshot} is of the ledger in {other} and was left as it is; run"
                    " `harness render` in the main working tree, or set XDG_STATE_HOME as there."
                )
            else:
                differing.append(snapshot)
    differing += [str(path) for path in render(root, check=check)]
    if not check:
        _accept(root, differing)
    verb = "differs from its template" if check else "rendered"
    emit(
        {"differing" if check else "written": differing},
        "\n".join(f"{path} {verb}" for path in differing) or "all rendered files are up to date",
        as_json=as_json,
    )
    sys.exit(1 if check and differing else 0)


def _accept(root: Path, written: list[str]) -> None:
    """Accept what a person rendered; the audit still reports what an agent rendered."""
    if caller(environment()) != HUMAN or not (root / CONFIG).exists():
        return
    with changing(root, deriving=True) as opened:
        if written or read_accepted(opened.layout) is None:
            accept_on_record(opened, by=HUMAN, paths=written)


def _root(start: Path) -> Path:
    """The project that contains `start`, or `start`: a repository may not be a project yet."""
    try:
        return find_root(start)
    except NotFoundError:
        return start
