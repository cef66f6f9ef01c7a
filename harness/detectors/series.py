"""What is remembered of one metric: a bounded window with its median and spread, the first rows,
the best."""

from bisect import bisect_left, insort
from collections import deque

from harness.detectors.alarm import Point

_FIRST = 3
_NORMAL_IQR = 1.349  # interquartile range of the standard normal distribution


class Window:
    """The last `size` finite values, in order of time and of size. Median and quartiles cost O(1),
    adding O(size)."""

    __slots__ = ("_ordered", "_recent", "count", "median", "size")

    def __init__(self, size: int) -> None:
        self._recent: deque[float] = deque(maxlen=size)
        self._ordered: list[float] = []
        self.size, self.count = size, 0
        self.median = 0.0
        """Of at least one value."""

    def add(self, value: float) -> None:
        recent, ordered = self._recent, self._ordered
        if self.count == self.size:
            del ordered[bisect_left(ordered, recent[0])]
        else:
            self.count += 1
        recent.append(value)
        insort(ordered, value)
        self.median = ordered[self.count // 2]

    @property
    def spread(self) -> float:
        """The standard deviation that a normal distribution of this interquartile range has."""
        count = len(self._ordered)
        return (
            self._ordered[(3 * count) // 4 - (count % 4 == 0)] - self._ordered[count // 4]
        ) / _NORMAL_IQR


class Series:
    """One metric's finite values. Everything here is O(1) in the number of rows."""

    __slots__ = (
        *(
            "_first",
            "best",
            "best_epoch",
            "best_row",
            "count",
            "falls",
            "key",
            "last",
            "level",
            "lowest",
            "points",
            "records",
        ),
        *("sign", "window"),
    )

    def __init__(self, key: str, *, sign: int = 1, window: int = 16) -> None:
        self.key = key
        self.sign = sign
        """1 when smaller is better, -1 when larger is."""
        self.window = Window(window)
        """What came before the newest value."""
        self.points: deque[tuple[int, float | None, float]] = deque(maxlen=8)
        """The newest rows as (row, place, value), for evidence; values that are not finite too."""
        self.level: float | None = None
        """The median of the first three values: where it started."""
        self.lowest = float("inf")
        """The least of the first three values."""
        self.count = 0
        self.records = 0
        """How often there was a new best: about ln(count) for noise, about count for a steady
        descent."""
        self.falls = 0
        """How many values in a row were less than the one before."""
        self.best = float("nan")
        """The best value so far, as it was logged."""
        self.best_row = 0
        self.best_epoch: float | None = None
        """None when its row says none."""
        self.last = float("nan")
        self._first: list[float] = []

    def add(self, value: float, row: int, epoch: float | None) -> None:
        """`value` is finite; call it after the detectors have seen it."""
        self.count += 1
        self.falls = self.falls + 1 if value < self.last else 0
        self.last = value
        self.window.add(value)
        if (self.best - value) * self.sign > 0 or self.count == 1:
            self.best, self.best_row, self.best_epoch = value, row, epoch
            self.records += 1
        if self.count <= _FIRST:
            self._first.append(value)
            self.lowest = min(self.lowest, value)
            self.level = sorted(self._first)[(len(self._first) - 1) // 2]

    def evidence(self, rows: int) -> tuple[Point, ...]:
        """The newest `rows` points, at most eight."""
        return tuple(
            Point(row=row, place=place, value=value)
            for row, place, value in tuple(self.points)[-rows:]
        )
