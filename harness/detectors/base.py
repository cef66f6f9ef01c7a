"""The base of every detector: metric, series, episode, alarm.

A new detector is one file with a class below SeriesDetector, PairDetector or RunDetector, and one
row in `kinds.KINDS` that names it.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Mapping
from enum import Enum, auto
from itertools import pairwise
from typing import NamedTuple, Protocol

from harness.detectors.alarm import Alarm, Point, Severity
from harness.detectors.kinds import KINDS
from harness.detectors.metric_names import MetricRole
from harness.detectors.rows import WatchedRow
from harness.detectors.watch_settings import WatchSettings

Thresholds = Mapping[str, float]
"""Name, e.g. "loss_spike.spreads" -> value."""
NORMAL_STEP = 0.954
"""Median absolute difference of two standard normal draws: sqrt(2) * 0.6745."""
_FIRST = 3
_NORMAL_IQR = 1.349
"""Interquartile range of the standard normal distribution."""


def median_of(one: float, two: float, three: float) -> float:
    """Of three finite values; quicker than by min and max, for it is asked of every row."""
    if one > two:
        one, two = two, one
    return two if three > two else max(one, three)


class Window:
    """The last `size` finite values. Median and quartiles cost O(1), adding a value O(size)."""

    __slots__ = ("_ordered", "_recent", "count", "median", "size")

    def __init__(self, size: int) -> None:
        # The same values twice: by time, to know which one leaves, and by size, for the quartiles.
        self._recent: deque[float] = deque(maxlen=size)
        self._ordered: list[float] = []
        self.size, self.count = size, 0
        self.median = 0.0

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
    def values(self) -> tuple[float, ...]:
        """Oldest first."""
        return tuple(self._recent)

    @property
    def spread(self) -> float:
        """The standard deviation that a normal distribution of this interquartile range has."""
        # The upper quartile's index is rounded down: of 4 values the third, not the largest.
        count = len(self._ordered)
        return (
            self._ordered[(3 * count) // 4 - (count % 4 == 0)] - self._ordered[count // 4]
        ) / _NORMAL_IQR


class Series:
    """What is remembered of one metric's finite values, in memory that does not grow with the run.

    Levels are medians: one odd first value must not decide what counts as a blow-up later.
    """

    __slots__ = (
        "_first",
        "_recent",
        "_seen",
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
        "sign",
        "steady",
        "window",
    )

    def __init__(self, key: str, *, sign: int = 1, window: int = 16) -> None:
        self.key = key
        self.sign = sign
        """1 when smaller is better, -1 when larger is."""
        self.window = Window(window)
        """The values before the newest one."""
        self.points: deque[tuple[int, float | None, float]] = deque(maxlen=8)
        """The newest rows as (row, place, value), for evidence; non-finite values too."""
        self.level: float | None = None
        """The median of the first three values: where it started."""
        self.lowest = float("inf")
        """The least of the first three values."""
        self.count = 0
        self.records = 0
        """Number of new bests: about ln(count) for noise, about count for a steady descent."""
        self.falls = 0
        """Length of the current sequence of values that each are less than the one before."""
        self.best = float("nan")
        """The best value so far."""
        self.best_row = 0
        self.best_epoch: float | None = None
        """None when its row has no epoch."""
        self.last = float("nan")
        self.steady = float("-inf")
        """Of a score that overfitting is looked for in: the best median of three."""
        self._first: list[float] = []
        self._seen: tuple[int, float | None, float] | None = None
        self._recent = float("nan")
        """Of the row `_seen`: the median of the newest three values."""

    def add(self, value: float, row: int, epoch: float | None) -> None:
        """Add a finite `value`, after the detectors have seen it."""
        self.count += 1
        self.falls = self.falls + 1 if value < self.last else 0
        self.last = value
        self.window.add(value)
        # `best` starts as NaN, which no value is better than: the first one needs the count.
        if (self.best - value) * self.sign > 0 or self.count == 1:
            self.best, self.best_row, self.best_epoch = value, row, epoch
            self.records += 1
        if self.count <= _FIRST:
            self._first.append(value)
            self.lowest = min(self.lowest, value)
            self.level = sorted(self._first)[(len(self._first) - 1) // 2]

    @property
    def recent(self) -> float:
        """The median of the newest three finite values; NaN before the first."""
        points = self.points
        if not points:
            return self.last
        # Several detectors ask in one row.
        if points[-1] is self._seen:
            return self._recent
        self._seen = points[-1]
        if len(points) > 2:
            one, two, three = points[-1][2], points[-2][2], points[-3][2]
            if one - one == two - two == three - three == 0:
                self._recent = median_of(one, two, three)
                return self._recent
        values = sorted([v for _, _, v in points if v - v == 0][-3:])
        self._recent = values[(len(values) - 1) // 2] if values else self.last
        return self._recent

    @property
    def noise(self) -> float:
        """The standard deviation of the values of the window around their trend."""
        moves = sorted(after - before for before, after in pairwise(self.window.values))
        if not moves:
            return 0.0
        trend = moves[len(moves) // 2]
        return sorted(abs(move - trend) for move in moves)[len(moves) // 2] / NORMAL_STEP

    def evidence(self, rows: int) -> tuple[Point, ...]:
        """The newest `rows` points, at most eight."""
        return tuple(
            Point(row=row, place=place, value=value)
            for row, place, value in tuple(self.points)[-rows:]
        )


class EpisodeChange(Enum):
    NOTHING = auto()
    WARNING = auto()
    FATAL = auto()
    OVER = auto()


class Episode:
    """Count consecutive wrong rows: warn after `rows`, fatal after `fatal_rows`, over after `calm`
    right ones (default `rows`), twice as many each further time: it does not come and go. Fewer
    wrong rows leave no trace."""

    __slots__ = ("_calm", "_fatal_rows", "_needed", "_raised", "_rows", "active", "hits")

    def __init__(
        self, rows: float, fatal_rows: float | None = None, *, calm: float | None = None
    ) -> None:
        # Fatal never comes before the warning, even when a plan sets its threshold lower.
        self._rows, self._fatal_rows = rows, None if fatal_rows is None else max(rows, fatal_rows)
        self._needed = rows if calm is None else calm
        self.hits = 0
        self._calm = 0
        self._raised = 0  # 1 after the warning, 2 after the fatal alarm
        self.active = False
        """Whether a right row still changes the state; if not, callers may skip `step`."""

    @property
    def raised(self) -> bool:
        return self._raised > 0

    def step(self, wrong: bool) -> EpisodeChange:
        if not wrong:
            self.hits = 0
            self._calm += 1
            if self._raised and self._calm >= self._needed:
                self._raised = 0
                self._needed *= 2
                self.active = False
                return EpisodeChange.OVER
            self.active = self._raised > 0
            return EpisodeChange.NOTHING
        self._calm, self.active = 0, True
        self.hits += 1
        if self._raised < 1 and self.hits >= self._rows:
            self._raised = 1
            return EpisodeChange.WARNING
        if self._fatal_rows is not None and self._raised < 2 and self.hits >= self._fatal_rows:
            self._raised = 2
            return EpisodeChange.FATAL
        return EpisodeChange.NOTHING


class WatchedMetric(NamedTuple):
    key: str
    role: MetricRole
    later: bool
    """Whether it is measured on rows outside the training set."""
    whole: bool
    """Whether it is the whole training loss, not a part of one."""


class Surroundings(Protocol):
    """What a detector may ask about the run beyond its own metric."""

    training_loss: Series | None
    total_epochs: int | None
    """The planned total, in the unit of the rows' `epoch`; an epoch may have several rows."""
    total_steps: int | None
    """The planned total of steps."""
    by_epoch: bool
    """Whether most rows begin an epoch; else they are rows of steps."""
    knows: bool
    """Whether an accuracy is well above a guess: a flat loss is then no failure to learn."""
    rate_rose: bool
    """Whether the learning rate rose within the last rows: a warm restart lifts the loss."""
    reinforced: bool
    """Whether this is reinforcement learning, where the size of the loss says nothing."""
    preference: bool
    """Whether this is preference training: it logs a margin of rewards."""
    policy: bool
    """Whether anything says that a policy is trained: a reward, an episode, a clipped ratio."""
    improving: bool
    """Whether a value on other rows was best in one of the last rows."""
    judged: frozenset[str]
    """The plan's metrics; what they say goes before all others."""
    later_scores: list[Series]
    """Scores on rows that are not trained on."""
    reward: Series | None
    sides: dict[str, Series]
    """Of a policy, the first of each: kl, entropy, length."""

    @property
    def solved(self) -> bool:
        """Whether the reward rose to its best and stays there."""


class Detector(ABC):
    """The thresholds of a detector, and its alarms about a series."""

    _limits: Thresholds

    def _alarm(
        self,
        threshold: str,
        change: EpisodeChange,
        row: WatchedRow,
        series: Series,
        message: str,
        *,
        rows: int = 4,
    ) -> Alarm:
        """`threshold` is the full name, e.g. "stall.rows"; the newest `rows` are the evidence."""
        code, name = threshold.split(".")
        return make_alarm(
            code,
            change,
            row,
            metric=series.key,
            message=message,
            evidence=series.evidence(rows),
            threshold=name,
            limits=self._limits,
        )


class SeriesDetector(Detector):
    """Sees each value of one metric. Every call must be O(1)."""

    @staticmethod
    @abstractmethod
    def watches(metric: WatchedMetric) -> bool:
        """Whether the watch makes one for this metric."""

    @abstractmethod
    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None: ...

    @abstractmethod
    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        """`value` is finite and not yet added to `series`."""

    def resumed(self, series: Series) -> None:
        """The command was restarted: rows from here on are of a new attempt."""
        return

    def kept(self, series: Series, row: WatchedRow) -> Alarm | None:
        """The final checkpoint was saved; `row` holds its epoch."""
        return None


class PairDetector(Detector):
    """Sees loss and accuracy of the same rows, in a row that has both."""

    @abstractmethod
    def __init__(self, limits: Thresholds) -> None: ...

    @abstractmethod
    def feed_pair(
        self, loss: Series, accuracy: Series, row: WatchedRow, values: tuple[float, float]
    ) -> Alarm | None:
        """`values` are those of this row: (loss, accuracy)."""


class RunDetector(Detector):
    """Sees each row of the run, whatever it measures."""

    @abstractmethod
    def __init__(self, settings: WatchSettings) -> None: ...

    @abstractmethod
    def feed_row(self, row: WatchedRow, around: Surroundings) -> Alarm | None:
        """A row of values."""

    def feed_event(self, row: WatchedRow) -> Alarm | None:
        """A row of another event: start, attempt, checkpoint, end."""
        return None


_SEVERITIES = {
    EpisodeChange.WARNING: Severity.WARNING,
    EpisodeChange.FATAL: Severity.FATAL,
    EpisodeChange.OVER: Severity.NOTE,
}


def make_alarm(
    code: str,
    change: EpisodeChange,
    row: WatchedRow,
    *,
    metric: str,
    message: str,
    evidence: tuple[Point, ...],
    threshold: str,
    limits: Thresholds,
) -> Alarm:
    """An alarm of the kind `code`; `threshold` is the name within the kind."""
    name = f"{code}.{threshold}"
    over = change is EpisodeChange.OVER
    return Alarm(
        code=code,
        severity=_SEVERITIES[change],
        metric=metric,
        row=row.number,
        place=row.place,
        message=f"{metric}: recovered: {message}" if over else f"{metric}: {message}",
        evidence=evidence,
        threshold=name,
        limit=limits[name],
        tries=() if over else KINDS[code].tries,
        recovered=over,
    )
