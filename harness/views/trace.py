"""A metric over a whole run in bounded memory; no spike and no NaN is lost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_CAPACITY = 512
BLOCKS = "▁▂▃▄▅▆▇█"
ASCII_BLOCKS = "_.-:=+*#"
_BAD, _ABOVE, _BELOW = "!", "▲", "▼"
_ASCII_ABOVE, _ASCII_BELOW = "^", "v"
_FENCE = 3.0
"""Interquartile ranges beyond the quartiles."""
_FAR = 0.5
"""Share of the height between an extreme and its rows' last value that draws an arrow."""
_LOG_FROM = 20.0


@dataclass(slots=True)
class Bucket:
    """Consecutive rows: their extremes, and how many values were not finite."""

    place: float | None
    low: float = math.inf
    high: float = -math.inf
    last: float = math.nan
    rows: int = 0
    bad: int = 0

    def add(self, value: float) -> None:
        self.rows += 1
        if math.isfinite(value):
            self.low, self.high, self.last = min(self.low, value), max(self.high, value), value
        else:
            self.bad += 1

    def join(self, later: "Bucket") -> None:
        self.low, self.high = min(self.low, later.low), max(self.high, later.high)
        self.last = self.last if math.isnan(later.last) else later.last
        self.rows, self.bad = self.rows + later.rows, self.bad + later.bad


@dataclass(frozen=True, kw_only=True)
class Best:
    value: float
    place: float | None


class Trace:
    """At most 512 buckets; `add` is O(1) amortized: full buckets are merged in pairs."""

    def __init__(self) -> None:
        self.current: float | None = None
        """The newest value, finite or not."""
        self.bad = 0
        """Values that were not finite."""
        self.smallest: Best | None = None
        self.largest: Best | None = None
        self._buckets: list[Bucket] = []
        self._rows_each = 1

    def add(self, value: float, place: float | None) -> None:
        self.current = value
        if not self._buckets or self._buckets[-1].rows >= self._rows_each:
            if len(self._buckets) >= _CAPACITY:
                self._halve()
            self._buckets.append(Bucket(place))
        self._buckets[-1].add(value)
        if not math.isfinite(value):
            self.bad += 1
            return
        if self.smallest is None or value < self.smallest.value:
            self.smallest = Best(value=value, place=place)
        if self.largest is None or value > self.largest.value:
            self.largest = Best(value=value, place=place)

    def drop_from(self, place: float) -> None:
        """Forget the rows from `place` on: a resume logs them again."""
        self._buckets = [
            bucket for bucket in self._buckets if bucket.place is None or bucket.place < place
        ]
        kept = [bucket for bucket in self._buckets if bucket.rows > bucket.bad]
        self.bad = sum(bucket.bad for bucket in self._buckets)
        if self.smallest is not None and (self.smallest.place or 0) >= place:
            lowest = min(kept, key=lambda bucket: bucket.low, default=None)
            self.smallest = None if lowest is None else Best(value=lowest.low, place=lowest.place)
        if self.largest is not None and (self.largest.place or 0) >= place:
            highest = max(kept, key=lambda bucket: bucket.high, default=None)
            self.largest = (
                None if highest is None else Best(value=highest.high, place=highest.place)
            )

    def points(self) -> list[tuple[float, float]]:
        """(place, last value) of each bucket that has both, in their order."""
        return [
            (float(bucket.place), bucket.last)
            for bucket in self._buckets
            if bucket.place is not None and math.isfinite(bucket.last)
        ]

    def sparkline(self, width: int, *, ascii_only: bool = False) -> str:
        """At most `width` characters, from low to high.

        `!`: a value was not finite; an arrow: one value is far from the others. Positive values
        that span more than a factor of 20 are drawn on a log scale.
        """
        columns = self._columns(width)
        finite = [bucket for bucket in columns if not bucket.bad]
        if not finite:
            return _BAD * len(columns)
        scale = _Scale([bucket.last for bucket in finite])
        highs, lows = (
            sorted(scale(bucket.high) for bucket in finite),
            sorted(scale(bucket.low) for bucket in finite),
        )
        # An arrow needs a value that is far both from its own rows and from all other columns: a
        # noisy metric would otherwise be drawn as arrows only.
        fences = _fence(highs)[1], _fence(lows)[0]
        return "".join(
            _character(bucket, scale, fences, ascii_only=ascii_only) for bucket in columns
        )

    def _columns(self, width: int) -> list[Bucket]:
        count = len(self._buckets)
        if count <= width:
            return self._buckets
        columns: list[Bucket] = []
        for index in range(max(0, width)):
            first, *others = self._buckets[index * count // width : (index + 1) * count // width]
            joined = Bucket(first.place, first.low, first.high, first.last, first.rows, first.bad)
            for other in others:
                joined.join(other)
            columns.append(joined)
        return columns

    def _halve(self) -> None:
        # Pairs are joined, not dropped: extremes and counts of bad values survive any length.
        for left, right in zip(self._buckets[::2], self._buckets[1::2], strict=True):
            left.join(right)
        self._buckets = self._buckets[::2]
        self._rows_each *= 2


class _Scale:
    """Maps a value to its height: 0 for the smallest of `values`, 1 for the largest."""

    def __init__(self, values: Sequence[float]) -> None:
        low, high = min(values), max(values)
        self._log = low > 0 and high > _LOG_FROM * low
        self._low = math.log(low) if self._log else low
        self._span = (math.log(high) if self._log else high) - self._low

    def __call__(self, value: float) -> float:
        if self._span <= 0 or not math.isfinite(self._span):
            return (
                0.5
                if value == self._low or not math.isfinite(self._span)
                else math.copysign(9.0, value - self._low)
            )
        if self._log:
            return (math.log(value) - self._low) / self._span if value > 0 else -1.0
        return (value - self._low) / self._span


def _fence(ordered: Sequence[float]) -> tuple[float, float]:
    """Tukey's outer fences: heights beyond them are far from the others."""
    count = len(ordered)
    lower, upper = ordered[count // 4], ordered[(3 * count) // 4 - (count % 4 == 0)]
    return lower - _FENCE * (upper - lower), upper + _FENCE * (upper - lower)


def _character(
    bucket: Bucket, scale: _Scale, fences: tuple[float, float], *, ascii_only: bool
) -> str:
    if bucket.bad:
        return _BAD
    height, above, below = scale(bucket.last), scale(bucket.high), scale(bucket.low)
    if above - height > _FAR and above > fences[0]:
        return _ASCII_ABOVE if ascii_only else _ABOVE
    if height - below > _FAR and below < fences[1]:
        return _ASCII_BELOW if ascii_only else _BELOW
    blocks = ASCII_BLOCKS if ascii_only else BLOCKS
    return blocks[max(0, min(len(blocks) - 1, int(height * len(blocks))))]
