"""`harness render`: write what is derived from the contract and the templates."""

import sys
from pathlib import Path

import click

from harness.cli.changing import changing
from harness.cli.output import emit, environment, json_option, project_option
from harness.cli.person import HUMAN, caller
from harness.errors import NotFoundError
from harness.guard.accepted import accept_on_record, read_accepted
from harness.rendering.render import render
from harness.rendering.snapshot import write_policy_snapshot
from harness.settings import CONFIG, find_root


@click.command("render")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when a rendered file differs.")
@project_option
@json_option
def command(check: bool, project: Path, as_json: bool) -> None:
    """Render agents and slash commands from the contract, and the policy snapshot that hooks read.

    In the harness's own repository also its plugin and its settings.
    """
    root = _root(project)
    differing = []
    if not check and (root / CONFIG).exists():
        with changing(
            root, deriving=True
        ) as opened:  # first: hooks deny without it, whatever else is amiss
            differing.append(opened.layout.relative(write_policy_snapshot(opened)))
    differing += [str(path) for path in render(root, check=check)]
    if not check:
        _accept(root, differing)
    verb = "differs from its template" if check else "rendered"
    emit(
        {"differing" if check else "written": differing},
        as_json=as_json,
        text=lambda: (
            "\n".join(f"{path} {verb}" for path in differing) or "all rendered files are fresh"
        ),
    )
    sys.exit(1 if check and differing else 0)


def _accept(root: Path, written: list[str]) -> None:
    """What a person rendered they accept, as the audit understands it; what an agent had rendered
    stays noticed."""
    if caller(environment()) != HUMAN or not (root / CONFIG).exists():
        return
    with changing(root, deriving=True) as opened:
        if written or read_accepted(opened.layout) is None:
            accept_on_record(opened, by=HUMAN, paths=written)


def _root(start: Path) -> Path:
    """The project that contains `start`; `start` itself where there is none: a repository that is
    no project yet."""
    try:
        return find_root(start)
    except NotFoundError:
        return start
