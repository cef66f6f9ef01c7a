"""metrics.jsonl: read it whole or while it grows, and keep the rows that hold after a resume.

Rows of the run logger have an `event` and their numbers under `metrics`; flat rows of other loggers
(`{"step": 1, "loss": 2.0}`) are read too. Non-finite numbers, bare or as text, become floats again.
"""

import hashlib
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """What a metrics file holds; counts are of `effective`."""

    present: bool
    """False when there is no file; it then has no rows."""
    rows: list[Row]
    """Every row, in file order."""
    effective: list[Row]
    warnings: list[str]
    """One for each damaged line; none for a last line that is still being written."""
    notes: list[str]
    """`resumed at 20`: where later rows replaced earlier ones."""
    non_finite: int
    first_bad_step: float | None
    """Place of the first non-finite value: the epoch in rows of the run logger, else the step."""


class Tail:
    """Follow a growing file by byte offset: return each complete line once, wait for the rest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []
        self.replaced = False
        """Whether the file was replaced or shortened since an earlier poll."""
        self._digest = hashlib.sha256()
        self._inode: int | None = None
        self._offset, self._lines, self._feed = 0, 0, LineFeed()

    def poll(self, *, final: bool = False) -> list[Row]:
        """The new rows; with `final` also a complete last line without its newline."""
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
            # A torn last line is what a kill leaves behind: normal, so no warning.
            if line.problem and not line.lost:
                self._warn(self._lines + 1, line.problem)
            self._feed.rest = b""
        return [_restored(row) for row in rows]

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

    def _read(self, stream: BinaryIO) -> list[Row]:
        status = os.fstat(stream.fileno())
        inode, size = status.st_ino, status.st_size
        # An edit in place keeps inode and size; `intact` finds it by the hash of what was read.
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
    """Read the whole file; one that does not exist has no rows."""
    tail = Tail(path)
    rows = tail.poll(final=True)
    merged, notes = _merge(rows)
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
    """The rows that hold after every resume, those of one step merged into one.

    An `attempt` row is a resume, and so is a step that goes back in all keys of a row's stream (the
    part of a key before "/"): what that stream held from there on is dropped.
    """
    return _merge(rows)[0]


def belonging(rows: Iterable[Row], *, run: str, token_sha256: str) -> list[Row]:
    """The rows of `run` ("exp-0001/run-01") from the first start row with its link token on."""
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
    """The number of non-finite values of any key, and the place of the first."""
    count, first = 0, None
    for row in rows:
        bad = sum(
            1 for _, value in values(row) if isinstance(value, float) and not math.isfinite(value)
        )
        if bad and first is None:
            first = place(row)
        count += bad
    return count, first


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


@dataclass
class _Merger:
    """Effective rows in construction: a resume costs what it drops, not the length of the file."""

    slots: list[Row | None] = field(default_factory=list)
    at: dict[float, int] = field(default_factory=dict)
    """Place -> its one slot."""
    stacks: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """Key -> the (place, slot) that still hold, in rising order: a resume pops from the end."""
    notes: list[str] = field(default_factory=list)

    def resume(self, position: float, keys: Iterable[str]) -> None:
        dropped = False
        for key in list(keys):
            stack = self.stacks.get(key, [])
            while stack and stack[-1][0] >= position:
                held_at, slot = stack.pop()
                self._forget(key, held_at, slot)
                dropped = True
        if dropped:
            self.notes.append(f"resumed at {position}")

    def _forget(self, key: str, held_at: float, slot: int) -> None:
        row = self.slots[slot]
        if row is None:
            return
        inner = _inner(row)
        (inner if key in inner else row).pop(key, None)
        # The slot stays in the list, empty: slots after it are addressed by their index.
        if not any(value is not None for _, value in values(row)):
            self.slots[slot] = None
            self.at.pop(held_at, None)

    def went_back(self, position: float, keys: list[str]) -> list[str]:
        """The keys of all streams in which every key of the row was beyond `position` before."""
        # Every key, not any: a logger that writes one late value of an earlier step did not resume.
        streams: dict[str, list[str]] = {}
        for key in keys:
            streams.setdefault(_stream(key), []).append(key)
        back = {
            name
            for name, members in streams.items()
            if all(self.stacks.get(key) and self.stacks[key][-1][0] > position for key in members)
        }
        return [key for key in self.stacks if _stream(key) in back] if back else []

    def put(self, position: float, row: Row) -> None:
        slot = self.at.get(position)
        if slot is None:
            slot = self.at[position] = len(self.slots)
            copy = dict(row)
            if isinstance(row.get("metrics"), dict):
                copy["metrics"] = dict(row["metrics"])
            self.slots.append(copy)
        else:
            held = self.slots[slot]
            assert held is not None
            metrics = _inner(held) | _inner(row)
            held.update({key: value for key, value in row.items() if value is not None})
            if metrics:
                held["metrics"] = metrics
        for key, _ in values(row):
            stack = self.stacks.setdefault(key, [])
            if not stack or stack[-1][0] < position:
                stack.append((position, slot))


def _inner(row: Row) -> Row:
    inner = row.get("metrics")
    return inner if isinstance(inner, dict) else {}


def _stream(key: str) -> str:
    return key.rpartition("/")[0]


def _merge(rows: Iterable[Row]) -> tuple[list[Row], list[str]]:
    """(effective rows, a note for each resume); rows without a place stay where they are."""
    merger, resumed = _Merger(), False
    for row in rows:
        event = row.get("event")
        position = place(row)
        if event == "attempt":
            resumed = True
            if isinstance(row.get("resumed_at"), int):
                merger.resume(row["resumed_at"], merger.stacks)
        if (event is not None and event != "epoch") or position is None:
            merger.slots.append(row)
            continue
        keys = [key for key, value in values(row) if value is not None]
        # An attempt row without `resumed_at`: the first row after it says where it went on.
        if resumed:
            merger.resume(position, merger.stacks)
            resumed = False
        elif back := merger.went_back(position, keys):
            merger.resume(position, back)
        merger.put(position, row)
    return [row for row in merger.slots if row is not None], merger.notes


def _restored(row: Row) -> Row:
    """`row` with "NaN", "inf" and the like as floats again."""
    for key, value in row.items():
        if type(value) is str:
            if key not in TEXTS and len(value) < 10 and value.lower() in _NON_FINITE:
                row[key] = _NON_FINITE[value.lower()]
        elif type(value) is dict and key == "metrics":
            row[key] = _restored(value)
    return row
