"""Detectors of a loss: non-finite, diverging and repeated values, spikes, a jump at a resume."""

import math
from collections import deque
from itertools import pairwise

from harness.detectors.alarm import Alarm, Severity
from harness.detectors.base import (
    NORMAL_STEP,
    Detector,
    Episode,
    EpisodeChange,
    Series,
    SeriesDetector,
    Surroundings,
    Thresholds,
    WatchedMetric,
    median_of,
)
from harness.detectors.metric_names import MetricRole
from harness.detectors.rows import WatchedRow
from harness.domain.words import some

_ENOUGH = 8
"""Values from which on a median and a spread mean something."""
_NEWEST = 6
"""Values before a resume that count: a longer past has a trend that hides a jump."""
_FLOOR = 0.02
"""Share of the median: the least spread. Without it every bend of a smooth curve is a spike."""
_SMALL = 0.05
"""Share of the first level: a smaller rise is no spike."""
_STEPS = 2
"""Factor of the persistence for rows of single steps, which are noisier than rows of epochs."""
_FAR = 1000.0
"""Times the first level: too far for any loss of a policy, when it is also"""
_NO_POLICY = 100.0
"""above this, for such a loss often begins near 0."""
_PEAKS, _PEAKS_WITHIN = 4, 10
"""So many rows among so many: a loss that swings is no better than one that stays high."""
_GROWN = 10.0
"""Times the first level, after as many rises in a row as are enough: no loss of a policy."""
_GROWS_FROM = 0.1
"""A policy's loss begins at 0 and may rise to any small value, with its KL."""
_COMES_DOWN = 0.85
"""Of the row before."""
_FINISHED = 0.02
"""Share of the first level: a loss below this has converged, and repeating is then no fault."""


class NonFinite(Detector):
    """NaN and infinities; the watch asks it first, since the others see finite values only."""

    def __init__(self, role: MetricRole, limits: Thresholds) -> None:
        self._limits = limits
        rows = limits[
            "non_finite.gradient_rows" if role is MetricRole.GRADIENT else "non_finite.rows"
        ]
        self._often: deque[int] = deque(maxlen=int(limits["non_finite.often"]))
        """The newest rows that were not finite."""
        self._within = limits["non_finite.within"]
        self._warns, self._ended = rows, False
        self._again = False
        self._repeats = role in (MetricRole.LOSS, MetricRole.SCORE)
        self._asks = role in (MetricRole.LOSS, MetricRole.SCORE, MetricRole.GRADIENT)
        self.episode = Episode(
            rows, limits["non_finite.fatal_rows"] if role is MetricRole.LOSS else None
        )

    def feed_any(self, series: Series, row: WatchedRow, finite: bool) -> Alarm | None:
        if finite and not self.episode.active:
            return None
        if not finite and self._repeats:
            self._often.append(row.number)
            self._again = len(self._often) == self._often.maxlen and (
                len(self._often) <= row.number - self._often[0] < self._within
            )
            if self._again:
                # Not in a row, but again and again.
                self.episode.hits = max(self.episode.hits, int(self._warns) - 1)
        change = self.episode.step(not finite)
        if change is EpisodeChange.NOTHING:
            return None
        hits = self.episode.hits
        since = f"not finite for {some(hits, 'row')}, since row {row.number - hits + 1}"
        if self._again and change is EpisodeChange.WARNING:
            since = f"not finite again and again: {len(self._often)} of the newest rows"
        alarm = self._alarm(
            "non_finite.fatal_rows" if change is EpisodeChange.FATAL else "non_finite.rows",
            change,
            row,
            series,
            "finite again" if change is EpisodeChange.OVER else since,
            rows=max(hits, 1) + 1,
        )
        return alarm if self._asks else alarm.at_most(Severity.NOTE)

    def at_end(self, series: Series, row: WatchedRow) -> Alarm | None:
        """A last value that is not finite waits for no further row."""
        last = series.points[-1] if series.points else None
        known = last is None or math.isfinite(last[2]) or self.episode.raised
        if last is None or known or not self._asks or self._ended:
            return None
        self._ended = True
        return self._alarm(
            "non_finite.rows",
            EpisodeChange.WARNING,
            row,
            series,
            "not finite in the last row",
            rows=2,
        )


class Divergence(SeriesDetector):
    """The median of the newest three losses is above the first level, or far above the best."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.whole

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._start = limits["divergence.above_start"]
        self._best = limits["divergence.above_best"]
        self._episode = Episode(limits["divergence.rows"], limits["divergence.fatal_rows"])
        self._before = (float("-inf"), float("-inf"))
        self._medians: deque[float] = deque(maxlen=4)
        """The newest: `_highest` is of the rows before them."""
        self._highest = float("-inf")
        self._peaks: deque[int] = deque(maxlen=_PEAKS)
        """The newest rows far above the start, in a row or not."""
        self._rises = 0

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        one, two = self._before
        self._before = (two, value)
        self._rises = self._rises + 1 if value > two else 0
        level = series.level
        # The median of three ignores one outlier, which is for the spike detector.
        now = median_of(one, two, value)
        if len(self._medians) == self._medians.maxlen:
            self._highest = max(self._highest, self._medians[0])
        self._medians.append(now)
        if level is None or (value <= level and not self._episode.active) or series.count < 2:
            return None
        if level <= 0:
            return None
        if value > 2 * self._start * level:
            self._peaks.append(row.number)
        wrong = now > self._start * level or (now > self._best * series.best > 0 and now > level)
        wrong = wrong or (
            len(self._peaks) == _PEAKS and row.number - self._peaks[0] < _PEAKS_WITHIN
        )
        if around.reinforced:
            # The size of a policy's loss says little; a thousand times it, or no end of rises, do.
            wrong = now > max(_FAR * level, _NO_POLICY)
            wrong = wrong or (self._rises >= _ENOUGH and now > _GROWN * max(level, _GROWS_FROM))
        elif around.rate_rose:
            # A restart lifts the loss, but not above all restarts before it.
            wrong = wrong and now > self._start * max(level, self._highest)
        if wrong and not self._episode.raised and _relearns(value, two, around):
            return None
        change = self._episode.step(wrong)
        if change is EpisodeChange.NOTHING:
            return None
        return self._alarm(
            "divergence.fatal_rows" if change is EpisodeChange.FATAL else "divergence.above_start",
            change,
            row,
            series,
            f"{now:.4g}, started at {level:.4g}, best {series.best:.4g}",
        )


class Spike(SeriesDetector):
    """The loss jumps out of its recent spread: a warning after two rows, a note when it is back.

    The only detector that watches parts of the training loss: they may rise while the whole falls,
    but not jump.
    """

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.role is MetricRole.LOSS

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._spreads, self._ratio = limits["loss_spike.spreads"], limits["loss_spike.ratio"]
        self._rows, self._recovery = limits["loss_spike.rows"], limits["loss_spike.recovery_rows"]
        self._height = 0.0
        self._bound = 0.0
        self._since = 0
        self._high = 0

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        if around.reinforced or series.window.count < _ENOUGH:
            return None
        if self._since:
            return self._inside(series, row, value, around)
        median = series.window.median
        if value <= self._ratio * abs(median) or value - median <= _SMALL * abs(
            series.level or 0.0
        ):
            return None
        spread = max(series.window.spread, _FLOOR * abs(median))
        if value <= median + self._spreads * spread or around.rate_rose:
            return None
        # Half way back counts as back: a loss seldom returns to its old median at once.
        self._since, self._high, self._height = 1, 1, value
        self._bound = median + 0.5 * self._spreads * spread
        return None

    def _inside(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        self._since += 1
        self._height = max(self._height, value)
        if value <= self._bound:
            rows, self._since = self._since - 1, 0
            return self._alarm(
                "spike_recovered.spreads",
                EpisodeChange.OVER,
                row,
                series,
                f"{self._height:.4g} for {some(rows, 'row')}, back at {value:.4g}",
                rows=5,
            )
        # One that falls again, as after harder rows came in, learns them.
        self._high += not _relearns(value, series.last, around)
        if self._high == (self._rows if around.by_epoch else _STEPS * self._rows):
            return self._alarm(
                "loss_spike.spreads",
                EpisodeChange.WARNING,
                row,
                series,
                f"{value:.4g}, usual below {self._bound:.4g}",
                rows=5,
            )
        if self._since > self._recovery:
            # This is the new level: the warning stands, later spikes are measured against it.
            self._since = 0
        return None


class Stall(SeriesDetector):
    """A loss repeats to the last bit. One of exactly 0, or one that has converged, is no fault."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.whole or (metric.later and metric.role is MetricRole.LOSS)

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits, self._later = limits, metric.later
        self._rows, self._rounded = limits["stall.rows"], limits["stall.rounded_rows"]
        self._equal = 0
        self._raised = False

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        if value != series.last and not self._equal:
            return None
        if value != series.last or not value or _converged(series, value) or around.reinforced:
            over = self._raised and value != series.last
            self._equal, self._raised = 0, False
            if not over:
                return None
            return self._alarm(
                "stall.rows", EpisodeChange.OVER, row, series, "it moves again", rows=1
            )
        self._equal += 1
        # A logger that rounds to four decimals repeats values of a healthy run.
        needed = self._rounded if round(value, 4) == value else self._rows
        if self._equal < needed or self._raised or (self._later and self._repeated(row, around)):
            return None
        self._raised = True
        rows = self._equal + 1
        message = f"exactly {value!r} for {rows} rows"
        return self._alarm("stall.rows", EpisodeChange.WARNING, row, series, message, rows=rows)

    def _repeated(self, row: WatchedRow, around: Surroundings) -> bool:
        """Whether only the log repeats: some loggers print the last evaluation until the next."""
        training = around.training_loss
        return training is None or training.best_row >= row.number - self._equal


class ResumeJump(SeriesDetector):
    """The first rows after a resume against the rows before it."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.whole

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._spreads = limits["resume_discontinuity.spreads"]
        self._ratio = limits["resume_discontinuity.ratio"]
        self._rows = int(limits["resume_discontinuity.rows"])
        self._left = 0
        self._bound = 0.0
        self._before = 0.0

    def resumed(self, series: Series) -> None:
        if series.window.count < 4:
            return
        newest = [value for _, _, value in series.points if math.isfinite(value)][-_NEWEST:]
        if len(newest) < 2:
            return
        # The spread comes from differences of neighbours, which a steady trend hardly changes; the
        # spread of the values themselves would grow with the trend and hide the jump.
        last = newest[-3:]
        self._before = sorted(last)[len(last) // 2]
        moves = sorted(abs(after - before) for before, after in pairwise(newest))
        spread = max(moves[len(moves) // 2] / NORMAL_STEP, _FLOOR * abs(self._before))
        self._bound = max(self._before + self._spreads * spread, self._ratio * self._before)
        self._left = self._rows

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        if not self._left:
            return None
        # One row within the bound ends the comparison: only a jump in all first rows counts.
        self._left = self._left - 1 if value > self._bound else 0
        if self._left or value <= self._bound:
            return None
        return self._alarm(
            "resume_discontinuity.spreads",
            EpisodeChange.WARNING,
            row,
            series,
            f"{value:.4g} after the resume; before it {self._before:.4g}, expected below"
            f" {self._bound:.4g}",
            rows=self._rows + 3,
        )


def _relearns(value: float, before: float, around: Surroundings) -> bool:
    """Whether a high loss comes down again, or helps on other rows."""
    return value < _COMES_DOWN * before or around.improving


def _converged(series: Series, value: float) -> bool:
    return series.level is not None and abs(value) < _FINISHED * abs(series.level)
