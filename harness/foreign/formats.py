"""What wrote a log: by its name where that says it, else by how it begins; and which logs a folder
holds."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from harness.artifacts.jsonl import LineFeed
from harness.errors import NotFoundError, UsageError
from harness.foreign.event_files import EventFile
from harness.foreign.json_lines import JsonLines
from harness.foreign.lines import Warnings, unmarked_utf16
from harness.foreign.rows import Row, as_number
from harness.foreign.status_documents import StatusDocument
from harness.foreign.step_logs import StepLog
from harness.foreign.tables import Table, plain_cell
from harness.foreign.trainer_state import TrainerState

KNOWN = (
    "metrics.jsonl",
    "metrics.csv",
    "results.csv",
    "trainer_state.json",
    "*tfevents*",
    "*.jsonl",
    "*.tsv",
    "*.log",
)
"""Looked for in a folder, in this order."""
SNIFFED_BYTES = 64 << 10
_DEPTH = 4
_MOST_LOOKED_AT = 20_000
_NAME = re.compile(r"[A-Za-z_][\w ./()@%-]*\Z")


class Parser(Protocol):
    name: str
    warnings: Warnings

    def feed(self, data: bytes) -> list[Row]: ...

    def finish(self) -> list[Row]: ...


def parser_for(path: Path, head: bytes, *, whole: bool) -> Parser | None:
    """The parser by the file's name and first bytes; None while they are too few to tell. `whole`:
    no more comes."""
    if "tfevents" in path.name:
        return EventFile()
    feed = LineFeed()
    lines = [line for line in feed.feed(unmarked_utf16(head[:64]) + head) if line.strip(b" \t\r\0")]
    rest = feed.rest.strip(b" \t\r\0")
    if whole and rest:
        lines.append(rest)
    first = (lines[0] if lines else rest).replace(b"\0", b"").strip()
    if not first:
        return None
    if first.startswith(b"{"):
        return _of_objects(path, lines, whole=whole or len(head) >= SNIFFED_BYTES)
    if not lines and len(head) < SNIFFED_BYTES and b"\r" not in rest:
        return None
    delimiter = _delimiter(first)
    return StepLog() if delimiter is None else Table(delimiter)


def _of_objects(path: Path, lines: list[bytes], *, whole: bool) -> Parser | None:
    if path.name == "trainer_state.json" or b'"log_history"' in b"".join(lines):
        return TrainerState()
    if path.suffix == ".json":
        return StatusDocument()
    if not lines:
        return JsonLines() if whole else None
    printed = lines[0].strip().startswith(b"{'")  # a dict as Python prints it
    return StepLog() if printed else JsonLines()


def _delimiter(first: bytes) -> str | None:
    """The delimiter, where the first line is a header of names or a row of numbers."""
    text = first.decode("utf-8", "replace")
    for delimiter in ("\t", ",", ";"):
        cells = [cell.strip().strip('"') for cell in text.split(delimiter)]
        if len(cells) < 2:
            continue
        if all(as_number(plain_cell(cell, delimiter)) is not None for cell in cells):
            return delimiter
        if (
            all(_NAME.match(cell) and len(cell) <= 80 for cell in cells if cell)
            and sum(map(bool, cells)) > 1
        ):
            return delimiter
    return None


def find_logs(path: Path, *, most: int) -> list[Path]:
    """The logs at `path`: the file itself, else the newest `most` that a folder holds, four folders
    deep.

    Of one folder only the first kind in `KNOWN` counts, and of checkpoints of one training the
    newest state. Raises NotFoundError, with what was looked for, when a folder holds none.
    """
    if not path.is_dir():
        return [path]
    found: dict[Path, Path] = {}
    for folder in _folders(path):
        for log in _logs_in(folder):
            state = log.name == "trainer_state.json" and folder.name.startswith("checkpoint-")
            place = folder.parent if state else log
            if place not in found or _modified(log) > _modified(found[place]):
                found[place] = log
    if not found:
        raise NotFoundError(
            f"{path} holds no log that is known; looked for {', '.join(KNOWN)}.",
            hint="Name the file itself.",
            code="no_log",
        )
    return sorted(sorted(found.values(), key=_modified, reverse=True)[:most])


def _logs_in(folder: Path) -> list[Path]:
    """Of the first pattern with any: all files of a kind that has no fixed name, else the
    newest."""
    for pattern in KNOWN:
        try:
            files = [item for item in folder.glob(pattern) if item.is_file()]
        except OSError:
            return []
        if files:
            return files if pattern.startswith("*.") else [max(files, key=_modified)]
    return []


def _folders(root: Path) -> Iterator[Path]:
    """`root` and the folders below it, links not followed."""
    waiting, looked_at = [(root, 0)], 0
    while waiting and looked_at < _MOST_LOOKED_AT:
        folder, depth = waiting.pop(0)
        looked_at += 1
        yield folder
        if depth >= _DEPTH:
            continue
        try:
            inner = sorted(
                item for item in folder.iterdir() if item.is_dir() and not item.is_symlink()
            )
        except OSError:
            continue
        waiting += [(item, depth + 1) for item in inner if not item.name.startswith(".")]


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def require_readable(path: Path, problem: str | None) -> None:
    """Raises UsageError for a log that cannot be read at all."""
    if problem is not None:
        raise UsageError(
            f"{path}: {problem}",
            hint="Name a regular file that you may read.",
            code="log_unreadable",
        )
