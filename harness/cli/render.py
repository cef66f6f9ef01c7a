"""`harness render`: write what is derived from the contract and the templates."""

import sys
from pathlib import Path

import click

from harness.cli.changing import changing
from harness.cli.output import emit, json_option, project_option
from harness.rendering.render import render
from harness.rendering.snapshot import write_policy_snapshot
from harness.settings import CONFIG


@click.command("render")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when a rendered file differs.")
@project_option
@json_option
def command(check: bool, project: Path, as_json: bool) -> None:
    """Render agents from the contract; in a project also the policy snapshot that hooks read."""
    differing = [str(path) for path in render(project, check=check)]
    if not check and (project / CONFIG).exists():
        with changing(project, deriving=True) as opened:
            differing.append(opened.layout.relative(write_policy_snapshot(opened)))
    verb = "differs from its template" if check else "rendered"
    emit(
        {"differing" if check else "written": differing},
        as_json=as_json,
        text=lambda: "\n".join(f"{path} {verb}" for path in differing) or "all rendered files are fresh",
    )
    sys.exit(1 if check and differing else 0)
