"""`harness doctor`: check that every guard works."""

import sys
from pathlib import Path

import click

from harness.cli.output import emit, environment, json_option, project_option
from harness.doctor.doctor import run_doctor
from harness.doctor.enclosing_session import enclosing_session


@click.command("doctor")
@click.option("--quick", is_flag=True, help="Skip the check that starts the Claude Code CLI.")
@click.option("--verbose", is_flag=True, help="List the passed checks too, not only their number.")
@project_option
@json_option
def command(quick: bool, verbose: bool, project: Path, as_json: bool) -> None:
    """Check that every hook runs, denies and allows as it must; exit 1 when a guard does not work.

    Starts each hook as the settings do, then the Claude Code CLI once against a scripted local
    model.
    """
    report = run_doctor(
        project,
        environment(),
        start_cli=not quick,
        session=enclosing_session(),
    )
    emit(report.document(), *report.lines(verbose=verbose), as_json=as_json)
    sys.exit(1 if report.broken else 0)
