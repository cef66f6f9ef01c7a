"""Columns of numbers between blanks, as numpy.savetxt, mlpack and shell scripts write them."""

import re
from collections.abc import Iterable
from itertools import pairwise

from harness.foreign.log_rows import Row, as_number, whole
from harness.foreign.parser import LineParser, LogHead, LogParser

_NEEDED = 3
"""Lines of numbers by which the form is known."""
_MOST_COLUMNS = 20
_NAME = re.compile(r"[%#]?\s*([^\W\d][^\d]{0,60}?)\s*")


def recognise(head: LogHead) -> LogParser | None:
    """A line of words or none, then lines with as many numbers each."""
    lines = [line.decode("utf-8", "replace").split() for line in head.lines[: _NEEDED + 1]]
    named = bool(lines) and _numbers(lines[0]) is None
    rows = [_numbers(line) for line in lines[named : _NEEDED + named]]
    if len(rows) < _NEEDED or None in rows:
        return None
    found = [row for row in rows if row is not None]
    if len({len(row) for row in found}) != 1 or len(found[0]) > _MOST_COLUMNS:
        return None
    words = " ".join(lines[0]) if named else head.path.stem
    name = _NAME.fullmatch(words)
    if name is None or (named and len(found[0]) > 1):
        return None
    return ColumnLog(name[1], len(found[0]), _counter(found))


def _numbers(cells: list[str]) -> list[float] | None:
    found = [as_number(cell) for cell in cells]
    return [x for x in found if x is not None] if cells and None not in found else None


def _counter(rows: list[list[float]]) -> int | None:
    """The first column of whole numbers that grows: it counts."""
    for index, values in enumerate(zip(*rows, strict=True)):
        steps = [b - a for a, b in pairwise(values)]
        if min(steps) > 0 and all(value == int(value) for value in values):
            return index
    return None


class ColumnLog(LineParser):
    """One row for each line of numbers; without a column that counts, lines are counted."""

    name = "columns of numbers"

    def __init__(self, name: str, count: int, counter: int | None) -> None:
        super().__init__()
        values = [index for index in range(count) if index != counter]
        several = len(values) > 1
        self._names = {i: f"{name} {i + 1}" if several else name for i in values}
        self._count, self._counter, self._rows = count, counter, 0

    def line(self, raw: bytes) -> Iterable[Row]:
        numbers = _numbers(self.text(raw).split())
        if numbers is None or len(numbers) != self._count:
            return []
        counter = self._counter
        step = self._rows if counter is None else whole(numbers[counter])
        self._rows += 1
        return [{"step": step, "metrics": {n: numbers[i] for i, n in self._names.items()}}]
