"""The table of log forms: how each is found in a folder, and how it is recognised."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from harness.artifacts.jsonl import LineFeed
from harness.errors import NotFoundError, UsageError
from harness.foreign import (
    columns,
    event_files,
    json_lines,
    json_tables,
    status_documents,
    step_logs,
    tables,
    trainer_state,
)
from harness.foreign.metric_files import is_of_mlflow, joined
from harness.foreign.parser import LogHead, LogParser, unmarked_utf16

SNIFFED_BYTES = 64 << 10
_DEPTH = 4
_MOST_LOOKED_AT = 20_000
_BLANK = b" \t\r\0"


class LogForm(NamedTuple):
    patterns: tuple[str, ...]
    """Names to search a folder for; a log that is named itself may be called anything."""
    recognise: Callable[[LogHead], LogParser | None]
    """The parser for a log with this head; None when it is of another form."""
    needs_line: bool = True
    """Whether recognising it needs a complete first line."""


# In the order in which a folder is searched. The first form that recognises a log reads it; forms
# that need no complete line are asked first. The last form takes any text.
FORMS = (
    LogForm(("metrics.jsonl", "*.jsonl"), json_lines.recognise),
    LogForm(("metrics.csv", "results.csv", "*.tsv"), tables.recognise),
    LogForm(("trainer_state.json",), trainer_state.recognise, needs_line=False),
    LogForm(("*tfevents*",), event_files.recognise, needs_line=False),
    LogForm((), json_tables.recognise, needs_line=False),
    LogForm((), status_documents.recognise, needs_line=False),
    LogForm((), columns.recognise),
    LogForm(("*.log",), step_logs.recognise),
)


def parser_for(
    path: Path,
    head: bytes,
    *,
    whole: bool,
) -> LogParser | None:
    """The parser for a log that begins with `head`; None while that is too short to tell.

    `whole`: the log is complete, nothing more will come.
    """
    feed = LineFeed()
    lines = [line for line in feed.feed(unmarked_utf16(head[:64]) + head) if line.strip(_BLANK)]
    rest = feed.rest.strip(_BLANK)
    if whole and rest:
        lines.append(rest)
    first = (lines[0] if lines else rest).strip(_BLANK).strip()
    start = LogHead(path, first, lines, whole)
    for form in FORMS:
        if not form.needs_line and (parser := form.recognise(start)) is not None:
            return parser
    # A progress bar ends its steps with carriage returns, and its line perhaps never.
    stepped = b"\r" in rest and not first.startswith(b"{")
    if not first or not (lines or whole or len(head) >= SNIFFED_BYTES or stepped):
        return None
    if not whole and not stepped and tables.may_be_header(start):
        return None
    recognised = (form.recognise(start) for form in FORMS if form.needs_line)
    return next(parser for parser in recognised if parser is not None)


def _patterns() -> list[str]:
    """In the order of the search: fixed names before endings that many files have."""
    patterns = [pattern for form in FORMS for pattern in form.patterns]
    return sorted(
        patterns,
        key=lambda pattern: pattern.startswith("*."),
    )


def find_logs(
    path: Path,
    *,
    most: int,
) -> list[Path]:
    """The logs at `path`: the file itself, or the newest `most` in a folder, four levels deep.

    In each folder only the first pattern with a match counts, and of the checkpoints of one
    training the newest state. A folder with a file for each metric stands for one log. Raises
    NotFoundError when a folder holds no log.
    """
    if not path.is_dir():
        return [path]
    newest: dict[Path, Path] = {}
    for folder in _folders(path):
        if is_of_mlflow(folder):
            newest[folder] = folder
        for log in _logs_in(folder):
            state = log.name == "trainer_state.json" and folder.name.startswith("checkpoint-")
            place = folder.parent if state else log
            if place not in newest or _modified(log) > _modified(newest[place]):
                newest[place] = log
    for log, folder in joined(list(newest), path).items():
        del newest[log]
        newest[folder] = folder
    if not newest:
        raise NotFoundError(
            f"{path} holds no known log; looked for {', '.join(_patterns())}.",
            hint="Name the file itself.",
            code="no_log",
        )
    return sorted(
        sorted(newest.values(), key=_modified, reverse=True)[:most],
    )


def _logs_in(folder: Path) -> list[Path]:
    """The files of the first pattern with a match: all of "*.ending", else only the newest."""
    for pattern in _patterns():
        try:
            files = [file for file in folder.glob(pattern) if file.is_file()]
        except OSError:
            return []
        if files:
            return files if pattern.startswith("*.") else [max(files, key=_modified)]
    return []


def _folders(root: Path) -> Iterator[Path]:
    """`root` and the folders below it; links are not followed."""
    waiting, looked_at = [(root, 0)], 0
    while waiting and looked_at < _MOST_LOOKED_AT:
        folder, depth = waiting.pop(0)
        looked_at += 1
        yield folder
        if depth >= _DEPTH:
            continue
        try:
            inner = sorted(
                child for child in folder.iterdir() if child.is_dir() and not child.is_symlink()
            )
        except OSError:
            continue
        waiting += [(child, depth + 1) for child in inner if not child.name.startswith(".")]


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def require_readable(
    path: Path,
    problem: str | None,
) -> None:
    """Raises UsageError for a log that cannot be read at all."""
    if problem is not None:
        raise UsageError(
            f"{path}: {problem}",
            hint="Name a regular file that you may read.",
            code="log_unreadable",
        )
