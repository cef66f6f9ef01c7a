"""`harness handoff`: leave a note for the next session."""

import shlex
import sys
from pathlib import Path

import click

from harness.artifacts.content import decode, read_text
from harness.audit.activity import transcript_home
from harness.cli.changing import changing
from harness.cli.output import emit, environment, json_option, project_option
from harness.cli.person import caller, session_of
from harness.decisions.experiments import write_hand_off
from harness.decisions.handing_over import hand_over
from harness.errors import UsageError
from harness.judge.handing import ENDED, SESSION_ID, SUMMARISED
from harness.ledger.facts import HandOff
from harness.ledger.project import Project
from harness.rendering.standing import next_steps

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
@click.option(
    "--left",
    metavar="SESSION",
    default=None,
    help="Tell from its transcript what a Claude Code session did; its hooks do this.",
)
@click.option(
    "--why",
    type=click.Choice([ENDED, SUMMARISED]),
    default=ENDED,
    hidden=True,
    help="What became of that session.",
)
@project_option
@json_option
def command(
    source: str | None,
    note: str | None,
    file: Path | None,
    experiment: str | None,
    left: str | None,
    why: str,
    project: Path,
    as_json: bool,
) -> None:
    """Record a hand-off of at most 4,000 characters for the briefing of the next session.

    Needs exactly one of --note TEXT, --file FILE and - (standard input), or --left SESSION.
    """
    if left is not None:
        if (source, note, file) != (None, None, None):
            raise click.UsageError("--left tells a session's work by itself: give it no text.")
        _of_session(project, left, why, experiment, as_json=as_json)
        return
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
    _say(opened, written, as_json=as_json)


def _of_session(
    start: Path, session: str, why: str, experiment: str | None, *, as_json: bool
) -> None:
    if not SESSION_ID.match(session):
        raise UsageError(
            f"{session!r} is no id of a Claude Code session.",
            hint="`harness traces` and the files of transcripts name them.",
        )
    home = transcript_home(environment())
    # What a session left lowers no grade: its start is known (`audit --began`).
    with changing(start, sees_sessions=False) as opened:
        written = hand_over(
            opened,
            session,
            home.glob(f"*/{session}.jsonl"),
            why=why,
            due=lambda _doings: f"{next_steps(opened)}.",
            experiment=experiment,
            worth=lambda found: found.changed,
        )
    if written is None:
        words = f"{session} did nothing, beside looking, that is not handed over"
        emit({"written": None, "session": session}, words, as_json=as_json)
        return
    _say(opened, written, as_json=as_json)


def _say(project: Project, written: HandOff, *, as_json: bool) -> None:
    path = project.layout.relative(project.layout.hand_off(written.at, written.hash))
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
