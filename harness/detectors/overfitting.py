"""Overfitting: a value on other rows gets worse while training goes on to improve."""

from itertools import pairwise
from math import log, sqrt

from harness.detectors.alarm import Alarm, Severity
from harness.detectors.base import (
    Episode,
    EpisodeChange,
    Series,
    SeriesDetector,
    Surroundings,
    Thresholds,
    WatchedMetric,
)
from harness.detectors.metric_names import MetricRole
from harness.detectors.rows import WatchedRow

_LEARNED = 0.15
"""Share of the first level: a loss on other rows below this has learned, whatever training does."""
_HELD = 0.05
"""Of its best: a score that lost no more holds."""
_ROUNDING = 1e-6
"""Values that differ by less are the same."""
_MEDIAN = 0.67
"""Standard deviation of the median of three draws of a normal distribution, over theirs."""


def _by_luck(series: Series) -> float:
    """How far the best median of three lies above the worst where nothing but noise moves them.

    The extremes of n normal draws are about sqrt(2 ln n) standard deviations from their level.
    """
    noise = max(series.noise, _of_few_rows(series)) if series.sign < 0 else series.noise
    return 2 * _MEDIAN * sqrt(2 * log(max(series.count, 2))) * noise


def _of_few_rows(series: Series) -> float:
    """The standard deviation of a share that is counted on as few rows as its steps show.

    The least move of an accuracy is one row: moves of 0.05 are those of 20 rows.
    """
    values = sorted(series.window.values)
    moves = [after - before for before, after in pairwise(values) if after - before > _ROUNDING]
    scale = 1.0 if series.best <= 1 else 100.0
    share = series.window.median / scale
    if not moves or not 0 < share < 1:
        return 0.0
    return scale * sqrt(share * (1 - share) * min(moves) / scale)


class Overfit(SeriesDetector):
    """A value on rows that are not trained on gets worse while the training loss improves.

    What is judged decides: of the plan's metric, else of a score, a loss is a note while that one
    holds.
    """

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.later and metric.role in (MetricRole.LOSS, MetricRole.SCORE)

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._improves = limits["overfit.improves"]
        self._worse = {1: limits["overfit.worse"], -1: limits["overfit.worse_score"]}
        self._episode = Episode(limits["overfit.rows"])
        self._noted = False
        """Whether what was raised is a note."""
        self._at_best: float | None = None
        """The training loss when this value was best."""

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        training = around.training_loss
        if training is None or not training.count or around.reinforced:
            return None
        # Training losses of single rows are noisy: their newest three count.
        now = training.recent
        if not series.count or (series.best - value) * series.sign > 0:
            self._at_best = now
        # Worse alone is no overfitting: the training loss must have gone on to improve since then.
        best, before = series.best, self._at_best
        if not series.count or before is None:
            return None
        worse = (value - best) * series.sign > self._worse[series.sign] * abs(best)
        improved = before - now > self._improves * abs(before)
        if series.sign < 0:
            series.steady = max(series.steady, series.recent)
        if worse and (improved or self._episode.active):
            worse = self._beyond_luck(series, value)
        wrong = worse and improved
        memorized = (
            series.sign > 0 and not wrong and self._memorized(series, row, value, training, before)
        )
        if self._noted and wrong and not self._held(series, around):
            # What was a note is one no more.
            self._episode, self._noted = Episode(self._limits["overfit.rows"]), False
        if not (wrong or memorized) and (worse or not self._episode.active):
            # While it is worse, noise of the training loss ends nothing.
            return None
        change = self._episode.step((wrong and not around.rate_rose) or memorized)
        if change is EpisodeChange.NOTHING:
            return None
        told = f"{value:.4g}, best {best:.4g} (row {series.best_row}); {training.key} went from"
        told += f" {before:.4g} on to {now:.4g}"
        name = "overfit.worse" if series.sign > 0 else "overfit.worse_score"
        alarm = self._alarm(name, change, row, series, told, rows=5)
        self._noted = change is EpisodeChange.WARNING and (memorized or self._held(series, around))
        return alarm.at_most(Severity.NOTE) if self._noted else alarm

    def _beyond_luck(self, series: Series, value: float) -> bool:
        """Whether noise alone would hardly make it as much worse."""
        if series.sign > 0:
            return value - series.best > _by_luck(series) / _MEDIAN
        # The best of many noisy scores is a lucky one.
        least = self._worse[-1] * abs(series.steady)
        return series.steady - series.recent > max(least, _by_luck(series))

    def kept(self, series: Series, row: WatchedRow) -> Alarm | None:
        """The final checkpoint is of this row: where that is the best one, nothing is lost."""
        if not self._episode.raised or self._noted or row.epoch is None:
            return None
        best = series.best_epoch
        if best is None or abs(row.epoch - best) > 1:
            return None
        self._noted = True
        told = f"the final checkpoint is of the best row, {series.best_row}"
        return self._alarm("overfit.worse", EpisodeChange.OVER, row, series, told, rows=5)

    @staticmethod
    def _held(series: Series, around: Surroundings) -> bool:
        """Whether what is judged is about as good as it ever was."""
        judged = around.judged
        if series.key in judged:
            return False
        if series.sign < 0:
            return bool(judged) and any(other.key in judged for other in around.later_scores)
        others = [
            other
            for other in around.later_scores
            if other.count and (not judged or other.key in judged)
        ]
        return bool(others) and all(
            other.steady - other.recent <= max(_HELD * abs(other.steady), _by_luck(other))
            for other in others
        )

    def _memorized(
        self, series: Series, row: WatchedRow, value: float, training: Series, before: float
    ) -> bool:
        """Whether the training loss falls far below this one, which stopped without learning."""
        level = series.level
        return (
            row.number - series.best_row >= 2
            and level is not None
            and value > max(self._limits["overfit.gap"] * training.last, _LEARNED * level)
            and 0 < training.last < (1 - self._limits["overfit.memorizes"]) * before
        )
