"""The rows of a metrics file that hold after every resume, in memory that does not grow with it.

The file is gone through twice: where did rows take the place of earlier ones, then which rows hold.
"""

import math
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from harness.artifacts.metrics_file import Row, Tail, place, rows_in, values

_WINDOW = 256
"""Places between the rows of one step that are still merged: late ones come soon."""
_MOST_KEYS = 10_000


class Metrics:
    """A metrics file as it was when this was made; one that does not exist has no rows."""

    def __init__(self, path: Path, *, look: Callable[[Row], None] | None = None) -> None:
        """`look` is called for each row of the file, in its order."""
        self.path = path
        self._resumes = Resumes()
        tail = Tail(path)
        for batch in tail.batches(final=True):
            for row in batch:
                self._resumes.take(row)
                if look is not None:
                    look(row)
        self.present = path.exists()
        self.warnings, self.more_warnings = tail.warnings, tail.more_warnings
        self.resumed, self.resumed_at = self._resumes.count, self._resumes.newest
        """How often later rows replaced earlier ones, and from where the last time."""

    def rows(self) -> Iterator[Row]:
        return islice(rows_in(self.path), self._resumes.rows)

    def effective(self) -> Iterator[Row]:
        """The rows that hold, those of one step merged into one."""
        return self._resumes.held(self.rows())


class Resumes:
    """Where rows replaced earlier ones.

    An `attempt` row is a resume, and so is a step that goes back in all keys of a row's stream (the
    part of a key before "/"): what that stream held from there on is dropped.
    """

    def __init__(self) -> None:
        self.rows = self.count = 0
        self.newest: float | None = None
        self._lowest: dict[str, float] = {}
        self._highest: dict[str, float] = {}
        """Key -> the least place at which a value of it holds, and about the largest."""
        self._top = -math.inf
        self._waits = False
        self._cuts: dict[str | None, _Cuts] = {}
        """Of a stream; None: of all."""

    def take(self, row: Row) -> None:
        """The next row of the file."""
        self.rows += 1
        if row.get("event") == "attempt":
            at = row.get("resumed_at")
            # Without it the first row after this one says where the training went on.
            self._waits = not isinstance(at, int)
            if isinstance(at, int):
                self._cut(at, None)
        position = _counted(row)
        if position is None:
            return
        keys = [key for key, value in values(row) if value is not None]
        if self._waits:
            self._cut(position, None)
            self._waits = False
        elif position < self._top and (back := self._went_back(position, keys)):
            self._cut(position, back)
        self._top = max(self._top, position)
        for key in keys:
            if key not in self._highest:
                if len(self._highest) < _MOST_KEYS:
                    self._highest[key] = self._lowest[key] = position
            elif self._highest[key] < position:
                self._highest[key] = position

    def held(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Of the same rows once more, those that hold."""
        window = _Window()
        cursors = {stream: _Cursor(cuts) for stream, cuts in self._cuts.items()}
        for number, row in enumerate(rows, start=1):
            position, kept = _counted(row), row
            if position is not None and cursors:
                cuts = {stream: one.at(number) for stream, one in cursors.items()}
                if position >= min(cuts.values()):
                    left = _without(row, position, cuts)
                    if left is None:
                        continue
                    kept = left
            yield from window.put(position, kept)
        yield from window.rest()

    def _went_back(self, position: float, keys: list[str]) -> set[str]:
        """The streams in which every key of the row was beyond `position` before."""
        # Every key, not any: a logger that writes one late value of an earlier step did not resume.
        streams: dict[str, bool] = {}
        for key in keys:
            beyond = self._highest.get(key, -math.inf) > position
            stream = _stream(key)
            streams[stream] = streams.get(stream, True) and beyond
        return {stream for stream, beyond in streams.items() if beyond}

    def _cut(self, position: float, streams: set[str] | None) -> None:
        keys = [
            key
            for key, highest in self._highest.items()
            if highest >= position and (streams is None or _stream(key) in streams)
        ]
        for key in keys:
            if self._lowest[key] >= position:
                del self._lowest[key], self._highest[key]
            else:
                self._highest[key] = math.nextafter(position, -math.inf)
        if not keys:
            return
        self._top = max(self._highest.values(), default=-math.inf)
        self.count, self.newest = self.count + 1, position
        for stream in [None] if streams is None else streams:
            self._cuts.setdefault(stream, _Cuts()).add(self.rows, position)


class _Cuts:
    """From which place on rows before a row are dropped: those that no later cut covers."""

    def __init__(self) -> None:
        self.rows, self.places = array("q"), array("d")

    def add(self, row: int, position: float) -> None:
        while self.places and self.places[-1] >= position:
            self.rows.pop()
            self.places.pop()
        self.rows.append(row)
        self.places.append(position)


class _Cursor:
    """Asked for rising rows."""

    def __init__(self, cuts: _Cuts) -> None:
        self._cuts, self._next = cuts, 0

    def at(self, row: int) -> float:
        """The least place that a cut after `row` drops."""
        rows = self._cuts.rows
        while self._next < len(rows) and rows[self._next] <= row:
            self._next += 1
        return self._cuts.places[self._next] if self._next < len(rows) else math.inf


class _Window:
    """The last rows, in order, of which those of one place are one."""

    def __init__(self) -> None:
        self._slots: deque[tuple[float | None, list[Row]]] = deque()
        self._at: dict[float, list[Row]] = {}

    def put(self, position: float | None, row: Row) -> Iterator[Row]:
        """The rows that leave."""
        slot = None if position is None else self._at.get(position)
        if slot is not None:
            slot[0] = _merged(slot[0], row)
            return
        slot = [row]
        self._slots.append((position, slot))
        if position is not None:
            self._at[position] = slot
        if len(self._slots) > _WINDOW:
            yield self._first()

    def rest(self) -> Iterator[Row]:
        while self._slots:
            yield self._first()

    def _first(self) -> Row:
        position, slot = self._slots.popleft()
        if position is not None:
            del self._at[position]
        return slot[0]


def _merged(held: Row, row: Row) -> Row:
    metrics = _inner(held) | _inner(row)
    both = held | {key: value for key, value in row.items() if value is not None}
    return both | {"metrics": metrics} if metrics else both


def _without(row: Row, position: float, cuts: dict[str | None, float]) -> Row | None:
    """`row` without the values that a cut dropped; None when none is left."""
    every = cuts.get(None, math.inf)
    dropped = {
        key
        for key, value in values(row)
        if value is not None and position >= min(every, cuts.get(_stream(key), math.inf))
    }
    if not dropped:
        return row
    inner = _inner(row)
    left = {key: value for key, value in row.items() if key in inner or key not in dropped}
    if inner:
        left["metrics"] = {key: value for key, value in inner.items() if key not in dropped}
    return left if any(value is not None for _, value in values(left)) else None


def _counted(row: Row) -> float | None:
    """The place of a row of values; None of any other."""
    event = row.get("event")
    return place(row) if event is None or event == "epoch" else None


def _inner(row: Row) -> Row:
    inner = row.get("metrics")
    return inner if isinstance(inner, dict) else {}


def _stream(key: str) -> str:
    return key.rpartition("/")[0]
