"""metrics.jsonl: read its rows one after the other, at once or while it grows.

Rows of the run logger have an `event` and their numbers under `metrics`; flat rows of other loggers
(`{"step": 1, "loss": 2.0}`) are read too. Non-finite numbers, bare or as text, become floats again.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from harness.artifacts.content import open_regular
from harness.artifacts.jsonl import COUNTERS, LineFeed, parse_line
from harness.errors import NotFoundError, UsageError

TEXTS = frozenset(
    {"t", "event", "run", "token", "status", "path", "error", "note", "config", "seed", "attempt"}
)
"""Keys of the run logger that are not measured values."""
Row = dict[str, Any]
_NON_FINITE = {
    sign + word: float(sign + word)
    for word in ("nan", "inf", "infinity")
    for sign in ("", "+", "-")
}
_BLOCK = 1 << 20
_LONGEST_LINE = 8 << 20
_MOST_WARNINGS = 100


class Tail:
    """Follow a growing file by byte offset: return each complete line once, wait for the rest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []
        """One for each damaged line; none for a last line that is still being written."""
        self.more_warnings = 0
        """Those beyond the first hundred."""
        self.replaced = False
        """Whether the file was replaced or shortened since an earlier poll."""
        self._digest = hashlib.sha256()
        self._inode: int | None = None
        self._offset, self._lines, self._feed = 0, 0, LineFeed(_LONGEST_LINE)

    def poll(self, *, final: bool = False) -> list[Row]:
        """All new rows at once."""
        return [*chain.from_iterable(self.batches(final=final))]

    def batches(self, *, final: bool = False) -> Iterator[list[Row]]:
        """The new rows, those of 1 MiB at a time, however long the file is; with `final` also a
        complete last line without its newline."""
        try:
            with open_regular(self.path, follow=False) as stream:
                yield from self._read(stream)
        except NotFoundError:
            pass
        except UsageError as error:  # a link, a pipe, no permission
            if error.message not in self.warnings:
                self._note(error.message)
        if final and self._feed.rest:
            line = parse_line(self._feed.rest)
            # A torn last line is what a kill leaves behind: normal, so no warning.
            if line.problem and not line.lost:
                self._warn(self._lines + 1, line.problem)
            self._feed.rest = b""
            yield [_restored(row) for row in line.rows]

    def intact(self) -> bool:
        """Whether the file still begins with the bytes read: rows are appended, never edited."""
        if self.replaced or not self._offset:
            return not self.replaced
        digest, left = hashlib.sha256(), self._offset
        try:
            with open_regular(self.path, follow=False) as stream:
                while left and (block := stream.read(min(left, _BLOCK))):
                    digest.update(block)
                    left -= len(block)
        except (NotFoundError, UsageError):
            return False
        return not left and digest.digest() == self._digest.digest()

    def _read(self, stream: BinaryIO) -> Iterator[list[Row]]:
        status = os.fstat(stream.fileno())
        inode, size = status.st_ino, status.st_size
        # An edit in place keeps inode and size; `intact` finds it by the hash of what was read.
        if self._inode is not None and (inode != self._inode or size < self._offset):
            self._note(f"{self.path.name} was replaced by another file; read again from its start")
            self._offset, self._lines, self._feed = 0, 0, LineFeed(_LONGEST_LINE)
            self.replaced, self._digest = True, hashlib.sha256()
        self._inode = inode
        stream.seek(self._offset)
        # What is written from here on is the next look's: a fast writer would hold this one up.
        while data := stream.read(min(_BLOCK, max(0, size - self._offset))):
            self._offset += len(data)
            self._digest.update(data)
            yield self._parsed(data)

    def _parsed(self, data: bytes) -> list[Row]:
        rows: list[Row] = []
        left_out = self._feed.left_out
        for raw in self._feed.feed(data):
            self._lines += 1
            line = parse_line(raw)
            rows += line.rows
            if line.problem:
                self._warn(self._lines, line.problem)
        if self._feed.left_out > left_out:
            longest = f"{_LONGEST_LINE >> 20} MiB"
            self._warn(self._lines + 1, f"is longer than {longest}; it was left out")
        return [_restored(row) for row in rows]

    def _warn(self, number: int, problem: str) -> None:
        self._note(f"{self.path.name} line {number} {problem}")

    def _note(self, text: str) -> None:
        if len(self.warnings) < _MOST_WARNINGS:
            self.warnings.append(text)
        else:
            self.more_warnings += 1


def rows_in(path: Path) -> Iterator[Row]:
    """Every row of the file as it is now, in its order; none where there is no file."""
    return chain.from_iterable(Tail(path).batches(final=True))


def belonging(rows: Iterable[Row], *, run: str, token_sha256: str) -> Iterator[Row]:
    """The rows of `run` ("exp-0001/run-01") from the first start row with its link token on."""
    begun = False
    for row in rows:
        if row.get("run") != run:
            continue
        if row.get("event") in ("start", "attempt"):
            token = hashlib.sha256(str(row.get("token")).encode()).hexdigest()
            if token != token_sha256:
                continue
            begun = True
        if begun:
            yield row


def place(row: Row) -> float | None:
    """The number that places a row: its epoch when the run logger wrote it, else its step."""
    names = ("epoch",) if row.get("event") == "epoch" else COUNTERS
    for name in names:
        value = row.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63:
            return value
    return None


def values(row: Row) -> Iterator[tuple[str, Any]]:
    """The measured values: those under `metrics`, and all keys but counters and TEXTS."""
    for key, value in row.items():
        if key == "metrics" and isinstance(value, dict):
            yield from value.items()
        elif key not in TEXTS and key not in COUNTERS:
            yield key, value


def _restored(row: Row) -> Row:
    """`row` with "NaN", "inf" and the like as floats again."""
    for key, value in row.items():
        if type(value) is str:
            if key not in TEXTS and len(value) < 10 and value.lower() in _NON_FINITE:
                row[key] = _NON_FINITE[value.lower()]
        elif type(value) is dict and key == "metrics":
            row[key] = _restored(value)
    return row
