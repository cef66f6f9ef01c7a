"""metrics.jsonl: reading, tailing, and what the rows add up to after a resume.

Rows of the run logger have an `event` and their numbers under `metrics`; flat rows of other loggers
(`{"step": 1, "loss": 2.0}`) are read too. Non-finite numbers, bare or as text, become floats again.
"""

import hashlib
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harness.artifacts.hashes import open_regular
from harness.artifacts.jsonl import LineFeed, parse_line
from harness.artifacts.metrics_merge import TEXTS, Row, merge, place, values
from harness.errors import NotFoundError, UsageError

_NON_FINITE = {
    sign + word: float(sign + word)
    for word in ("nan", "inf", "infinity")
    for sign in ("", "+", "-")
}
_BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """What a metrics file says. `rows` is every row in file order; the rest is about the effective
    rows."""

    present: bool
    """False when there is no file; it then has no rows."""
    rows: list[Row]
    effective: list[Row]
    warnings: list[str]
    """One a damaged line; none for a last line that is still being written."""
    notes: list[str]
    """`resumed at 20`: where the counter went back and later rows replaced earlier ones."""
    non_finite: int
    first_bad_step: float | None
    """The step, or the epoch for rows of the run logger, of the first non-finite value of any
    key."""


class Tail:
    """Follows a growing file by byte offset: each complete line is read once, a half-written one
    waits."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []
        self.replaced = False
        """Whether another or a shorter file stood there at a later look."""
        self._digest = hashlib.sha256()
        self._inode: int | None = None
        self._offset, self._lines, self._feed = 0, 0, LineFeed()

    def poll(self, *, final: bool = False) -> list[Row]:
        """The rows that are new since the last call. With `final` a complete last line counts
        without its newline."""
        rows: list[Row] = []
        try:
            with open_regular(self.path, follow=False) as stream:
                rows = self._read(stream)
        except NotFoundError:
            pass
        except UsageError as error:  # a link, a pipe, no permission
            if error.message not in self.warnings:
                self.warnings.append(error.message)
        if final and self._feed.rest:
            line = parse_line(self._feed.rest)
            rows += line.rows
            if line.problem and not line.lost:
                self._warn(self._lines + 1, line.problem)
            self._feed.rest = b""
        return [_restored(row) for row in rows]

    def intact(self) -> bool:
        """Whether all that was read so far still stands there, byte for byte: rows are appended,
        never edited."""
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

    def _read(self, stream: BinaryIO) -> list[Row]:
        inode, size = _identity(stream)
        if self._inode is not None and (inode != self._inode or size < self._offset):
            self.warnings.append(
                f"{self.path.name} was replaced by another file; read again from its start"
            )
            self._offset, self._lines, self._feed = 0, 0, LineFeed()
            self.replaced, self._digest = True, hashlib.sha256()
        self._inode = inode
        stream.seek(self._offset)
        data = stream.read()
        self._offset += len(data)
        self._digest.update(data)
        rows: list[Row] = []
        for raw in self._feed.feed(data):
            self._lines += 1
            line = parse_line(raw)
            rows += line.rows
            if line.problem:
                self._warn(self._lines, line.problem)
        return rows

    def _warn(self, number: int, problem: str) -> None:
        self.warnings.append(f"{self.path.name} line {number} {problem}")


def read_rows(path: Path) -> Metrics:
    """Read the whole file. A file that does not exist has no rows and `present` is False."""
    tail = Tail(path)
    rows = tail.poll(final=True)
    merged, notes = merge(rows)
    count, first = bad_values(merged)
    return Metrics(
        present=path.exists(),
        rows=rows,
        effective=merged,
        warnings=tail.warnings,
        notes=notes,
        non_finite=count,
        first_bad_step=first,
    )


def effective(rows: Iterable[Row]) -> list[Row]:
    """The rows that hold after every resume, train and eval rows of one step merged into one.

    An `attempt` row, or a step that goes back in all keys of a row's stream (the part of a key
    before "/"), is a resume: what the stream held from there on is dropped, other streams keep
    theirs.
    """
    return merge(rows)[0]


def belonging(rows: Iterable[Row], *, run: str, token_sha256: str) -> list[Row]:
    """The rows that belong to `run` ("exp-0001/run-01"): none before a start row that carries its
    link token."""
    kept: list[Row] = []
    for row in rows:
        if row.get("run") != run:
            continue
        if row.get("event") in ("start", "attempt"):
            token = hashlib.sha256(str(row.get("token")).encode()).hexdigest()
            if token != token_sha256:
                continue
        elif not kept:
            continue
        kept.append(row)
    return kept


def bad_values(rows: Iterable[Row]) -> tuple[int, float | None]:
    """How many values of any key are not finite, and the place of the first."""
    count, first = 0, None
    for row in rows:
        bad = sum(
            1 for _, value in values(row) if isinstance(value, float) and not math.isfinite(value)
        )
        if bad and first is None:
            first = place(row)
        count += bad
    return count, first


def _identity(stream: BinaryIO) -> tuple[int, int]:
    status = os.fstat(stream.fileno())
    return status.st_ino, status.st_size


def _restored(row: Row) -> Row:
    """`row` with "NaN", "inf" and the like as floats again."""
    for key, value in row.items():
        if type(value) is str:
            if key not in TEXTS and len(value) < 10 and value.lower() in _NON_FINITE:
                row[key] = _NON_FINITE[value.lower()]
        elif type(value) is dict and key == "metrics":
            row[key] = _restored(value)
    return row
