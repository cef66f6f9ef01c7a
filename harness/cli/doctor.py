"""`harness doctor`: check that every guard works."""

import sys
from pathlib import Path

import click

from harness.cli.output import emit, environment, json_option, project_option
from harness.cli.person import require_person
from harness.cli.reading import reading
from harness.doctor.doctor import run_doctor
from harness.doctor.enclosing_session import enclosing_session
from harness.runs.notify import Notifier


@click.command("doctor")
@click.option("--quick", is_flag=True, help="Skip the check that starts the Claude Code CLI.")
@click.option("--verbose", is_flag=True, help="List the passed checks too, not only their number.")
@click.option(
    "--notify",
    is_flag=True,
    help="Only send one trial notice to whom `notify` of config.toml names.",
)
@project_option
@json_option
def command(quick: bool, verbose: bool, notify: bool, project: Path, as_json: bool) -> None:
    """Check that every hook runs, denies and allows as it must; exit 1 when a guard does not work.

    Starts each hook as the settings do, then the Claude Code CLI once against a scripted local
    model. --notify sends a trial notice instead, and says what went wrong with it; it must be run
    by a person, also without a terminal.
    """
    if notify:
        _try_notify(project, as_json=as_json)
    report = run_doctor(
        project,
        environment(),
        start_cli=not quick,
        session=enclosing_session(),
    )
    emit(report.document(), *report.lines(verbose=verbose), as_json=as_json)
    sys.exit(1 if report.broken else 0)


def _try_notify(start: Path, *, as_json: bool) -> None:
    require_person("doctor --notify", environment(), needs_terminal=False)
    with reading(start) as project:
        notifier = Notifier(project, lambda _text: None)
        problems = notifier.trial()
        ways = notifier.ways
    lines = [f"notify: {problem}" for problem in problems]
    sent = "; ".join(ways)
    lines = lines or [f"a trial notice was sent: the harness {sent}"]
    emit({"ways": ways, "problems": problems}, *lines, as_json=as_json)
    sys.exit(1 if problems else 0)
