"""Labels that stand in order somewhere else: as they are, from the last to the first, with other
names for the classes, with another sign, rounded.

A column of classes is coded by how far back each row's class was seen last, which no renaming
changes; a column of numbers by the numbers, rounded as they are there, without their signs. Runs of
such codes are compared. A run is as long as 50 bits of the labels take, by what they say after the
row before and by how far they can be compressed, so that an accident does not happen; runs that
known labels have as well, or that repeat, say nothing.
"""

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.plans.row_keys import FREE, Grid, Keys, codes, grids, mixed

LEAST = 8
"""Labels of the shortest run."""
BITS = 50
"""Of a run that is no accident."""
BITS_NOTED = 28
MOST_CLASSES = 50
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)
_FARTHEST = 64

Column = NDArray[Any]
Ints = NDArray[np.int64]


def is_classes(label: Column) -> bool:
    kinds = np.unique(label.astype(str) if label.dtype.kind == "O" else label)
    if label.dtype.kind == "f" and not np.all(kinds == np.round(kinds)):
        return False
    return len(kinds) <= MOST_CLASSES


@dataclass(kw_only=True)
class Sequence:
    """The labels of one secret table, in its order."""

    label: Column
    known: list[Column]
    """The labels of tables that agents may read."""
    _made: dict[Any, "_Runs | None"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.classes = is_classes(self.label)

    def found(self, column: Column) -> tuple[str, int, float] | None:
        """(form, labels, bits) of the longest part of the labels that `column` holds in order."""
        if self.classes:
            runs = self._runs("classes")
            if runs is None or len(column) < runs.length:
                return None
            if len(set(column[: 4 * MOST_CLASSES].tolist())) > 2 * MOST_CLASSES:
                return None
            kinds, plain = np.unique(column, return_inverse=True)
            if not 2 <= len(kinds) <= 2 * MOST_CLASSES:
                return None
            coded = _back(plain.astype(np.int64), runs.reach)
        else:
            if column.dtype.kind not in "biuf" or len(column) < LEAST:
                return None
            numbers = column.astype(np.float64)[:, None]
            grid = grids(numbers)[0]
            runs = self._runs(grid)
            if runs is None or len(column) < runs.length:
                return None
            coded = codes(numbers, [grid])[:, 0].astype(np.int64)
        best = None
        for form, wanted in runs.wanted.items():
            covered = _covered(wanted, _rolling(coded, runs.length), runs.length, len(self.label))
            if covered and (best is None or covered > best[1]):
                best = (form, covered, runs.bits)
        return best

    def shortest(self) -> float:
        """Entries below which nothing can be found."""
        if not self.classes:
            return LEAST
        runs = self._runs("classes")
        return math.inf if runs is None else runs.length

    def _runs(self, kind: "str | Grid") -> "_Runs | None":
        if kind not in self._made:
            self._made[kind] = self._make(kind)
        return self._made[kind]

    def _make(self, kind: "str | Grid") -> "_Runs | None":
        plain = [_plain(column, kind) for column in (self.label, *self.known)]
        own = plain[0]
        told = rate(own)
        reach = 0 if kind != "classes" else min(_FARTHEST, 4 * len(np.unique(own)), len(own) // 4)
        if kind == "classes" and len(np.unique(own)) == 2:
            reach = 8
        if told <= 0 or len(own) - reach < LEAST:
            return None
        length = min(max(LEAST, math.ceil(BITS / told)), len(own) - reach)
        bits = length * told
        if bits < BITS_NOTED:
            return None

        def runs(numbers: Ints) -> Keys:
            coded = _back(numbers, reach) if kind == "classes" else numbers
            return _rolling(coded, length)[reach:]

        known = [runs(part) for part in plain[1:] if len(part) >= length]
        used = np.unique(np.concatenate(known)) if known else np.zeros(0, np.uint64)
        wanted = {
            form: _telling(runs(numbers), used)
            for form, numbers in {"in order": own, "in reverse order": own[::-1]}.items()
        }
        return _Runs(length=length, reach=reach, bits=bits, wanted=wanted)


@dataclass(frozen=True, kw_only=True)
class _Runs:
    length: int
    reach: int
    bits: float
    wanted: dict[str, tuple[Keys, Ints]]
    """Form -> (sorted keys of runs, where each begins)."""


def _plain(column: Column, kind: "str | Grid") -> Ints:
    if kind == "classes":
        text = column.astype(str) if column.dtype.kind == "O" else column
        return np.unique(text, return_inverse=True)[1].astype(np.int64)
    grid = kind if isinstance(kind, tuple) else FREE
    return codes(column.astype(np.float64)[:, None], [grid])[:, 0].astype(np.int64)


def rate(plain: Ints) -> float:
    """Bits that a label says: alone, after the one before, and compressed; the least."""
    kinds, numbers = np.unique(plain, return_inverse=True)
    pairs = numbers[:-1] * len(kinds) + numbers[1:]
    alone = _entropy(np.unique(numbers, return_counts=True)[1])
    after = _entropy(np.unique(pairs, return_counts=True)[1]) - _entropy(
        np.unique(numbers[:-1], return_counts=True)[1]
    )
    if len(kinds) > MOST_CLASSES:
        # Of numbers that hardly repeat, what follows what is always new.
        after = alone
    packed = zlib.compress(
        numbers.astype(np.uint16 if len(kinds) > 256 else np.uint8).tobytes(), 9
    )
    return min(alone, after, 8 * len(packed) / len(numbers))


def _entropy(counts: Ints) -> float:
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def _back(plain: Ints, reach: int) -> Ints:
    """How far back each entry's like is, 0 for farther than `reach`."""
    order = np.argsort(plain, kind="stable")
    same = plain[order[1:]] == plain[order[:-1]]
    far = np.zeros(len(plain), dtype=np.int64)
    far[order[1:][same]] = (order[1:] - order[:-1])[same]
    far[far > reach] = 0
    return far


def _rolling(coded: Ints, length: int) -> Keys:
    """A key for each run of `length` entries."""
    n = len(coded)
    if n < length:
        return np.zeros(0, dtype=np.uint64)
    power, inverse = _powers(_BASE, n), _powers(_INVERSE, n)
    sums = np.zeros(n + 1, dtype=np.uint64)
    sums[1:] = np.cumsum(mixed(coded.astype(np.uint64)) * power, dtype=np.uint64)
    return (sums[length:] - sums[: n - length + 1]) * inverse[: n - length + 1]


def _powers(base: int, n: int) -> Keys:
    size = 1 << max(10, (n - 1).bit_length())
    return _some_powers(base, size)[:n]


@lru_cache(maxsize=8)
def _some_powers(base: int, size: int) -> Keys:
    made = np.full(size, base, dtype=np.uint64)
    made[0] = 1
    return np.cumprod(made, dtype=np.uint64)


def _telling(runs: Keys, used: Keys) -> tuple[Keys, Ints]:
    kinds, first, counts = np.unique(runs, return_index=True, return_counts=True)
    single = (counts == 1) & ~np.isin(kinds, used)
    return kinds[single], first[single].astype(np.int64)


def _covered(wanted: tuple[Keys, Ints], runs: Keys, length: int, rows: int) -> int:
    """How many labels the runs cover that are wanted."""
    keys, begins = wanted
    if not len(keys):
        return 0
    places = np.searchsorted(keys, runs)
    hits = places[keys[np.minimum(places, len(keys) - 1)] == runs]
    if not len(hits):
        return 0
    here = np.unique(hits)
    marks = np.zeros(rows + 1, dtype=np.int64)
    np.add.at(marks, begins[here], 1)
    np.add.at(marks, np.minimum(begins[here] + length, rows), -1)
    return int((np.cumsum(marks)[:rows] > 0).sum())


def sequences(
    numbers: NDArray[np.float64], words: dict[str, Column]
) -> Iterator[tuple[str, Column]]:
    """(what, column) of everything in a block that could be labels in order."""
    rows, columns = numbers.shape
    for place in range(columns):
        yield f"column {place + 1}", numbers[:, place]
    if columns > 1:
        if rows <= 64:
            for place in range(rows):
                yield f"line {place + 1}", numbers[place]
        whole = numbers.reshape(-1)
        if len(np.unique(whole[:1000])) <= MOST_CLASSES:
            yield "all numbers", whole
    for name, texts in words.items():
        yield f"column {name!r}", texts
