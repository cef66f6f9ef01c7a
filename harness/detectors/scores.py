"""Detectors of scores: outside their range, collapsed, or where they began."""

from harness.detectors.alarm import Alarm, Severity
from harness.detectors.base import (
    Episode,
    EpisodeChange,
    PairDetector,
    Series,
    SeriesDetector,
    Surroundings,
    Thresholds,
    WatchedMetric,
)
from harness.detectors.metric_names import MetricRole, range_of
from harness.detectors.rows import WatchedRow

_PERCENT = 100.0
_LOW = 0.5
"""Of the scale: a score that stands above this may be a majority class, or good."""
_COSINE = -1.05
"""The least loss of a negative cosine; a cross-entropy has none below 0."""
_LEARNED = 0.5
"""Of the first training loss: below this a model has learned something."""
_MEMORIZED = 0.1
"""Of the first training loss: the training rows are known by heart."""
_EXACT = 20
"""Rows in which a score that is the same to the last bit does not move."""


class OutOfRange(SeriesDetector):
    """A value that its name rules out, e.g. an accuracy above 100 or a negative MSE.

    Between 1 and 100 an accuracy is a percentage; `StillScore` tells of one that stays low.
    """

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return range_of(metric.key) is not None

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        found = range_of(metric.key)
        assert found is not None
        self._least, self._most = found
        self._slack = limits["out_of_range.slack"]
        self._episode = Episode(limits["out_of_range.rows"])

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        inside = self._least - self._slack <= value <= self._most + self._slack
        if inside and not self._episode.active:
            return None
        change = self._episode.step(not inside)
        if change is EpisodeChange.NOTHING:
            return None
        told = f"{value:.4g}, possible are {self._least:g} to {self._most:g}"
        return self._alarm("out_of_range.rows", change, row, series, told)


class NegativeLoss(PairDetector):
    """A loss beside an accuracy that falls below 0: its sign or its targets are wrong."""

    def __init__(self, limits: Thresholds) -> None:
        self._limits = limits
        self._episode = Episode(limits["out_of_range.rows"])

    def feed_pair(
        self, loss: Series, accuracy: Series, row: WatchedRow, values: tuple[float, float]
    ) -> Alarm | None:
        paid, _ = values
        if paid >= _COSINE and not self._episode.active:
            return None
        change = self._episode.step(paid < _COSINE)
        if change is EpisodeChange.NOTHING:
            return None
        told = f"{paid:.4g} beside {accuracy.key}; a cross-entropy is never negative"
        return self._alarm("out_of_range.rows", change, row, loss, told)


class ScoreCollapse(SeriesDetector):
    """A score lost a large part of its best, whatever the loss does."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.role is MetricRole.SCORE and range_of(metric.key) is not None

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._share = limits["score_collapse.share"]
        self._episode = Episode(limits["score_collapse.rows"])
        self._one = self._two = self._high = 0.0

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        # The highest level of three rows, so that one lucky row is no best.
        self._high = max(self._high, min(self._one, self._two, value))
        self._one, self._two = self._two, value
        low = value < (1 - self._share) * self._high
        if not low and not self._episode.active:
            return None
        change = self._episode.step(low and not around.rate_rose and value <= series.last * 1.15)
        if change is EpisodeChange.NOTHING:
            return None
        told = f"{value:.4g}, was at {self._high:.4g} (best in row {series.best_row})"
        return self._alarm("score_collapse.share", change, row, series, told, rows=5)


class StillScore(SeriesDetector):
    """A low score stays where it began while the training loss falls."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        found = range_of(metric.key)
        return metric.role is MetricRole.SCORE and found is not None and found[0] == 0

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._rows = limits["no_progress.score_rows"]
        self._moves = limits["no_progress.score_moves"]
        self._episode = Episode(1, calm=4)
        self._same = True

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        level, loss = series.level, around.training_loss
        self._same = self._same and (not series.count or value == series.last)
        if level is None or series.count < self._rows or around.reinforced or around.preference:
            return None
        scale = 1.0 if series.best <= 1 else _PERCENT
        median = series.window.median
        low = max(median, level) < _LOW * scale
        if not low and not self._episode.active:
            return None
        moved = max(abs(median - level), abs(series.recent - level) / 2) / scale
        still = moved < self._moves and moved * scale < 0.25 * abs(level)
        if not (low and still) and not self._episode.active:
            return None
        if self._episode.raised and moved < 2 * self._moves and low:
            return None
        if around.improving and not self._episode.active:
            return None
        change = self._episode.step(low and still)
        if change is EpisodeChange.NOTHING:
            return None
        left = loss is not None and loss.level and loss.window.median / loss.level
        return self._told(change, series, row, value, left or 1.0)

    def _told(
        self, change: EpisodeChange, series: Series, row: WatchedRow, value: float, left: float
    ) -> Alarm:
        """`left` is the part of the training loss that is left."""
        percent = series.best > 1
        if percent and left < _LEARNED and change is EpisodeChange.WARNING:
            told = f"{value:.4g} while the training loss fell to {left:.0%}: no share of 0 to 1"
            told += ", and as a percentage it did not move"
            return self._alarm("out_of_range.rows", change, row, series, told, rows=8)
        told = f"{value:.4g} after {series.count + 1} rows, started at {series.level:.4g}"
        if change is EpisodeChange.OVER:
            told = "it moves"
        alarm = self._alarm("no_progress.score_moves", change, row, series, told, rows=8)
        # Rows known by heart and nothing learned: meant at times, and not sure to stay so.
        exact = self._same and series.count >= _EXACT
        return alarm.at_most(Severity.NOTE) if left < _MEMORIZED and not exact else alarm
