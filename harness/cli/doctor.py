"""`harness doctor`: is every guard alive?"""

import sys
from pathlib import Path

import click

from harness.cli.output import emit, environment, json_option, project_option
from harness.doctor.run import run_doctor
from harness.doctor.session import enclosing_session


@click.command("doctor")
@click.option("--quick", is_flag=True, help="Do not start the Claude Code CLI.")
@click.option(
    "--verbose", is_flag=True, help="Show every check that is in order, not only how many."
)
@project_option
@json_option
def command(quick: bool, verbose: bool, project: Path, as_json: bool) -> None:
    """Check that every hook of the project runs, denies and lets pass; exit 1 when any guard is
    dead.

    Each hook is started as the settings say; then the Claude Code CLI once, against a scripted
    model on this machine.
    """
    report = run_doctor(project, environment(), start_cli=not quick, session=enclosing_session())
    emit(report.document(), as_json=as_json, text=lambda: "\n".join(report.lines(verbose=verbose)))
    sys.exit(1 if report.dead else 0)
