"""`harness traces ...`: sessions of agents, shown, turned into states, withdrawn."""

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import click

from harness.audit.activity import transcript_home, transcripts_of
from harness.audit.session_outcomes import session_outcomes
from harness.cli.output import (
    CommandGroup,
    WholeNumber,
    emit,
    environment,
    json_option,
    project_option,
)
from harness.cli.reading import reading
from harness.cli.teacher import (
    TeacherWords,
    teacher_lines,
    teacher_options,
    teaching,
    with_teacher,
)
from harness.cli.withdrawing import taken_out, told
from harness.domain.words import some
from harness.errors import NotFoundError, UsageError
from harness.files import atomic_write
from harness.ledger.project import Project
from harness.posttrain.contamination import contamination
from harness.posttrain.tables import texts_of
from harness.posttrain.vocabulary import THRESHOLDS
from harness.settings import load_settings
from harness.traces.dataset import card, write_dataset
from harness.traces.ingest import (
    Reading,
    Source,
    Terms,
    ingest,
    sources,
)
from harness.traces.redaction import Redactor
from harness.traces.summary import conversation, summarise
from harness.traces.training_rows import Kind, Settings, training_rows
from harness.views.sessions import (
    files_table,
    messages_table,
    session_lines,
    sessions_table,
)

_MOST_MESSAGES = 200
_PATHS = click.Path(path_type=Path)


@click.group("traces", cls=CommandGroup)
def command() -> None:
    """Show agents' sessions, make states of them for training, withdraw one."""


@command.command("show")
@click.argument("which", metavar="[SESSION|PATH]", default="")
@click.option(
    "--limit",
    type=WholeNumber(min=1),
    default=20,
    show_default=True,
    help="Of the list: the newest so many.",
)
@click.option("--messages", is_flag=True, help="The messages too, each cut.")
@project_option
@json_option
def show_command(which: str, limit: int, messages: bool, project: Path, as_json: bool) -> None:
    """Show a session: messages, tools, subagents, tokens and cost by model, time.

    Without an argument the sessions of this project. Forks and copies count once. PATH is a
    transcript of Claude Code or of another agent (docs/traces.md), or a folder of some.
    """
    outcomes: Mapping[str, Any] = {}
    wanted = ""
    if which and Path(which).exists():
        listed = sources([Path(which)])
    else:
        outcomes = _outcomes(project)
        listed, wanted = _found(_root(project), which, limit)
    found = Reading(listed)
    rows = [row for row in summarise(found) if row["session"].startswith(wanted)]
    for row in rows:
        row["experiments"] = outcomes.get(row["session"], [])
    document: dict[str, Any] = {
        "sessions": rows,
        "files": [tally.plain() for tally in found.tallies],
    }
    lines: list[str] = []
    if which and len(rows) == 1:
        lines += session_lines(rows[0])
    elif rows:
        lines.append(sessions_table(rows))
    if messages and len(rows) == 1:
        told = conversation(Reading(listed), rows[0]["session"])
        document["messages"] = list(told)
        lines.append(messages_table(document["messages"][-_MOST_MESSAGES:]))
    wrong = [tally for tally in document["files"] if tally["verdict"] != "read"]
    lines += [files_table(wrong)] if wrong else []
    lines += [] if rows else ["no sessions found"]
    emit(document, *lines, as_json=as_json)


def _found(root: Path, which: str, limit: int) -> tuple[list[Source], str]:
    """The transcripts of the project, the newest `limit`, or those of the session `which`, and the
    beginning of its id."""
    home = transcript_home(environment())
    paths = transcripts_of(root, home, None) if home.is_dir() else iter(())
    if not which:
        newest = sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)
        return sources(list(islice(newest, limit))), ""
    named = [path for path in home.rglob(f"{which}*.jsonl") if path.stem.startswith(which)]
    if not named:
        raise NotFoundError(
            f"There is no session and no file {which!r}; sessions are looked for in {home}.",
            hint="`harness traces show` lists those of this project.",
        )
    return sources(named), which


@command.command("ingest")
@click.argument("paths", nargs=-1, required=True, type=_PATHS)
@click.option(
    "-o",
    "--out",
    type=_PATHS,
    default="traces.jsonl",
    show_default=True,
    help="A new file.",
)
@click.option("--licence", default=None, help="Under which the rows may be used.")
@click.option("--consent", is_flag=True, help="Whoever is in the sessions agreed to that use.")
@click.option("--name", "names", multiple=True, help="A name to redact; may be repeated.")
@click.option(
    "--pattern",
    "patterns",
    multiple=True,
    help="A regular expression to redact; may be repeated.",
)
@click.option("--strict", is_flag=True, help="Refuse to write where anything must be redacted.")
@project_option
@json_option
def ingest_command(
    paths: tuple[Path, ...],
    out: Path,
    licence: str | None,
    consent: bool,
    names: tuple[str, ...],
    patterns: tuple[str, ...],
    strict: bool,
    project: Path,
    as_json: bool,
) -> None:
    """Write the states of sessions as JSON lines: context, action, tool results, outcome.

    Secrets, e-mail addresses, home folders, names and patterns are redacted before anything is
    written. In a project its ledger tells the outcomes. Beside OUT stands its manifest: what was
    read and counted in each file.
    """
    manifest = ingest(
        sources(paths),
        out,
        redactor=Redactor(names=names, patterns=patterns),
        terms=Terms(licence=licence, consent=consent),
        outcomes=_outcomes(project),
        strict=strict,
    )
    redacted = ", ".join(f"{kind} ({count})" for kind, count in manifest["redacted"].items())
    lines = [
        f"{out}: {some(manifest['rows'], 'state')} of {some(len(manifest['sessions']), 'session')}",
        f"redacted: {redacted or 'nothing'}",
        files_table(manifest["files"]),
    ]
    if licence is None or not consent:
        lines.append("without --licence and --consent no row may be exported")
    emit({"out": str(out), **manifest}, *lines, as_json=as_json)


def _root(project: Path) -> Path:
    """Of the project, else the folder itself: Claude Code works anywhere."""
    try:
        return load_settings(project, environment()).root
    except NotFoundError:
        return project.resolve()


def _ledger(project: Path) -> Project | None:
    """None outside a project, and where nothing is recorded yet."""
    try:
        return reading(project)
    except NotFoundError:
        return None


def _outcomes(project: Path) -> Mapping[str, Any]:
    """Session -> what the ledger says of it."""
    opened = _ledger(project)
    if opened is None:
        return {}
    with opened:
        return session_outcomes(opened)


@command.command("rows")
@click.argument("states", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--out", type=_PATHS, required=True, help="A new file.")
@click.option("--kind", type=click.Choice(list(map(str, Kind))), default=Kind.PAIRS.value)
@click.option("--text", is_flag=True, help="Prompts and answers as one text each.")
@click.option(
    "--context",
    type=WholeNumber(min=200),
    default=4_000,
    show_default=True,
    help="Characters of a prompt: older messages, and the middle of long ones, are left out.",
)
@click.option(
    "--held-out",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Share of the sessions whose rows go to a file of their own.",
)
@teacher_options
@project_option
@json_option
def rows_command(
    states: Path,
    out: Path,
    kind: str,
    text: bool,
    context: int,
    held_out: float,
    teacher: TeacherWords,
    project: Path,
    as_json: bool,
) -> None:
    """Make training rows of STATES, which `traces ingest` wrote.

    Pairs of a better and a worse action in one context, hints for a teacher, completions, or
    labelled ones, in the layouts of TRL. Sessions are split whole; beside OUT stand its manifest
    and a card. With --teacher the better action of a pair is what that model answers.
    """
    with teaching(teacher, out, project) as taught:
        if taught is not None and (text, kind) == (False, Kind.PAIRS):
            text = True  # a teacher answers with one text
        settings = Settings(kind=Kind(kind), text=text, budget=context)
        maker = training_rows if taught is None else taught.rows
        manifest = write_dataset(states, out, settings, held_out=held_out, maker=maker)
    manifest = with_teacher(out, manifest, taught, judge=teacher.judge)
    told = None
    if manifest["held_out"]:
        train, aside = (texts_of(path) for path in (out, out.with_suffix(".held_out.jsonl")))
        told = contamination(train, aside).plain()
    page = out.with_suffix(".card.md")
    atomic_write(page, card(out, manifest, contamination=told))
    made = ", ".join(f"{reason} ({count})" for reason, count in manifest["reasons"].items())
    emit(
        {"out": str(out), "card": str(page), **manifest, "contamination": told},
        f"{out}: {some(manifest['rows'], 'row')}, {manifest['held_out']} held out; {made}",
        *_too_few(manifest, held_out),
        *teacher_lines(manifest),
        f"{page}: read it before you train or publish",
        as_json=as_json,
    )


def _too_few(manifest: Mapping[str, Any], held_out: float) -> list[str]:
    if not held_out or manifest["held_out"] >= THRESHOLDS.rows:
        return []
    sessions = some(manifest["held_out_sessions"] + len(manifest["sessions"]), "session")
    more = "more sessions, a larger --held-out"
    if manifest["kind"] != Kind.SFT:
        more += ", --teacher, or --kind sft (`posttrain approve --evaluator perplexity`)"
    return [
        f"a benchmark needs {THRESHOLDS.rows} held-out rows; {sessions} gave"
        f" {manifest['held_out']}: {more}"
    ]


@command.command("withdraw")
@click.argument("session")
@click.argument("datasets", nargs=-1, type=_PATHS)
@click.option("--dry-run", is_flag=True, help="Only say where the session is.")
@project_option
@json_option
def withdraw_command(
    session: str, datasets: tuple[Path, ...], dry_run: bool, project: Path, as_json: bool
) -> None:
    """Take a session's rows out of DATASETS, and name every model that was trained on them.

    DATASETS are files of states or of training rows; by default the datasets of this project's
    training programs. Each is rewritten in place, its manifest says so. A model that used the
    session stays; reject it or roll back: `harness posttrain lineage MODEL` shows what it is.
    """
    opened = _ledger(project)
    with opened or nullcontext():
        files = list(datasets) or _own_datasets(opened)
        if not files:
            raise UsageError(
                "No dataset was named, and no training program here has one.",
                hint=f"E.g. `harness traces withdraw {session} rows.jsonl`.",
            )
        document = taken_out(opened, session, files, dry_run=dry_run)
    emit(document, *told(document, dry_run=dry_run), as_json=as_json)
    rows = any(one["rows"] for one in document["datasets"])
    if not rows and not document["programs"] and not document["benchmarks"]:
        sys.exit(1)


def _own_datasets(opened: Project | None) -> list[Path]:
    """Of the project's training programs, those that are there."""
    if opened is None:
        return []
    root, programs = opened.layout.root, opened.ledger.programs()
    own = {root / program.spec["dataset"]["path"] for program in programs}
    return sorted(path for path in own if path.is_file())
