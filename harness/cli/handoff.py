"""`harness handoff`: leave a note for the next session."""

import shlex
import sys
from pathlib import Path

import click

from harness.artifacts.content import decode, read_text
from harness.cli.changing import changing
from harness.cli.output import emit, environment, json_option, project_option
from harness.cli.person import caller, session_of
from harness.decisions.experiments import write_hand_off
from harness.errors import UsageError

STDIN = "-"


@click.command("handoff")
@click.argument("source", required=False, metavar="[-]")
@click.option("--note", default=None, help="The text of the hand-off.")
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="Read the text from a file.",
)
@click.option(
    "--experiment", default=None, help="The experiment it is about; default: the undecided one."
)
@project_option
@json_option
def command(
    source: str | None,
    note: str | None,
    file: Path | None,
    experiment: str | None,
    project: Path,
    as_json: bool,
) -> None:
    """Record a hand-off of at most 4,000 characters for the briefing of the next session.

    Needs exactly one of --note TEXT, --file FILE and - (standard input).
    """
    text = _text(source, note, file)
    by, session = caller(environment()), session_of(environment())
    with changing(project) as opened:
        written = write_hand_off(
            opened,
            text=text,
            by=by,
            session=session,
            experiment=experiment,
        )
        path = opened.layout.relative(opened.layout.hand_off(written.at, written.hash))
    document = {
        "written": path,
        "by": written.by,
        "session": written.session,
        "experiment": written.experiment,
        "at": written.at,
    }
    emit(document, f"wrote {path}; the briefing of the next session shows it", as_json=as_json)


def _text(source: str | None, note: str | None, file: Path | None) -> str:
    if source not in (None, STDIN):
        raise UsageError(
            f"{source!r} stands by itself; the text of a hand-off stands behind --note.",
            hint=f"`harness handoff --note {shlex.quote(source)}`.",
        )
    if sum(option is not None for option in (source, note, file)) != 1:
        raise UsageError(
            "A hand-off needs exactly one text.",
            hint="Use one of `--note TEXT`, `--file FILE` and `-`.",
        )
    if note is not None:
        return note
    if file is not None:
        return read_text(file)
    return decode(sys.stdin.buffer.read(), where="standard input")
