"""Detectors of learning: no progress, a plateau, gradients that vanish or explode."""

import math

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
from harness.detectors.metric_names import MetricRole
from harness.detectors.rows import WatchedRow

_FINISHED = 0.02
"""Share of the first level: a loss below this has converged; a gradient of 0 is then no fault."""
_STEPS = 8
"""Rows of steps that count as much as one row of an epoch."""
_HIDES, _PATIENCE = 2.0, 15.0
"""Square of noise in units of what is looked for that doubles the rows; at most so often."""
_RECENT = 8
_LEAST_ROWS = 10
"""Rows without a new best until it is a plateau."""
_OFTEN = 0.5
"""Share of the rows: a loss with more new bests descends, however slowly."""
_RETURNS = ("return", "reward", "ep_rew")
_SAME = 1e-6
"""Relative: a return that differs by less is the same."""
_FALLS = 3
"""So many falls in a row are a descent: noise has them 1 time in 24."""
_GUESS = 0.6
"""An accuracy above this is not a guess among two classes or more."""


class NoProgress(SeriesDetector):
    """The training loss is where it started."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.whole

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._improvement = limits["no_progress.improvement"]
        self._rows, self._share = limits["no_progress.flat_rows"], limits["no_progress.share"]
        self._episode = Episode(1, calm=limits["no_progress.rows"])
        self._start: float | None = None
        """The level of the first rows, as wide as the one that is compared with it."""

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        if series.level is None or series.count < self._rows:
            return None
        window = series.window
        if self._start is None and window.count == window.size:
            self._start = window.median
        level = series.level if self._start is None or around.by_epoch else self._start
        # A falling loss, the usual case, ends here.
        if not self._episode.active and window.median < (1 - self._improvement) * level:
            return None
        if around.reinforced or not self._enough(series, row, around, level):
            return None
        improved = (level - window.median) / abs(level) if level else 0.0
        # A slow steady descent improves little over the window, yet sets new bests all the time.
        descends = series.records > _OFTEN * series.count
        flat = improved < self._improvement and level > 0 and not descends and not around.knows
        change = self._episode.step(flat)
        if change is EpisodeChange.NOTHING:
            return None
        return self._alarm(
            "no_progress.improvement",
            change,
            row,
            series,
            f"{value:.4g} after {series.count + 1} rows, started at {level:.4g}",
        )

    def _enough(self, series: Series, row: WatchedRow, around: Surroundings, level: float) -> bool:
        """Whether there are enough rows: more of steps than of epochs, more where noise hides what
        is looked for."""
        rows = self._rows if around.by_epoch else _STEPS * self._rows
        hidden = series.window.spread / (self._improvement * abs(level)) if level else 0.0
        rows *= 1 + min(hidden * hidden / _HIDES, _PATIENCE)
        total, epoch = around.total_epochs, row.epoch
        return series.count >= rows and (
            total is None or epoch is None or epoch >= self._share * total
        )


class StillReturn(SeriesDetector):
    """A return or reward is the same from the first row on."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.role is MetricRole.SCORE and any(word in metric.key for word in _RETURNS)

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits, self._rows = limits, limits["no_progress.still_rows"]
        self._moved = self._raised = False

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        if self._moved or series.level is None:
            return None
        still = abs(value - series.level) <= _SAME * abs(series.level)
        if still and (self._raised or series.count + 1 < self._rows):
            return None
        self._moved = not still
        if self._moved and not self._raised:
            return None
        self._raised = still
        return self._alarm(
            "no_progress.still_rows",
            EpisodeChange.WARNING if still else EpisodeChange.OVER,
            row,
            series,
            f"{value:.4g} in all {series.count + 1} rows" if still else "it moves",
        )


class Chance(PairDetector):
    """Accuracy and loss of one split are those of a uniform guess.

    With k classes a uniform guess has accuracy 1/k and loss ln(k), so loss = -ln(accuracy) whatever
    k is: the number of classes need not be known.
    """

    def __init__(self, limits: Thresholds) -> None:
        self._limits = limits
        self._distance = limits["no_progress.chance"]
        self._episode = Episode(limits["no_progress.rows"])

    def feed_pair(
        self, loss: Series, accuracy: Series, row: WatchedRow, values: tuple[float, float]
    ) -> Alarm | None:
        paid, hit = values
        if hit >= _GUESS and not self._episode.active:
            return None
        guess = 0 < hit < _GUESS and paid > 0 and abs(paid + math.log(hit)) < self._distance * paid
        # A loss that passes ln(k) on its way down has these values for a row or two as well.
        change = self._episode.step(guess and loss.falls < _FALLS)
        if change is EpisodeChange.NOTHING:
            return None
        return self._alarm(
            "no_progress.chance",
            change,
            row,
            accuracy,
            f"{hit:.4g} with a loss of {paid:.4g}: a uniform guess among {1 / hit:.3g} classes"
            if guess
            else "above a guess",
            rows=self._episode.hits or 1,
        )


class ExplodedLogits(PairDetector):
    """A cross-entropy beside an accuracy that is far worse than any guess."""

    def __init__(self, limits: Thresholds) -> None:
        self._limits = limits
        self._most = limits["divergence.nats"]
        self._episode = Episode(limits["divergence.rows"])

    def feed_pair(
        self, loss: Series, accuracy: Series, row: WatchedRow, values: tuple[float, float]
    ) -> Alarm | None:
        paid, _ = values
        if paid <= self._most and not self._episode.active:
            return None
        change = self._episode.step(paid > self._most)
        if change is EpisodeChange.NOTHING:
            return None
        return self._alarm(
            "divergence.nats",
            change,
            row,
            loss,
            f"{paid:.4g} nats; a guess among 50,000 classes has 10.8",
        )


class Plateau(SeriesDetector):
    """No clearly better training loss for a long part of the run; only a note."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.whole

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._share, self._least = limits["plateau.share"], limits["plateau.improvement"]
        self._raised = False
        self._mark: float | None = None
        """The best value when it was last clearly better, and where that was."""
        self._row, self._epoch = 0, 0.0

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        level = value if series.level is None else series.level
        mark = self._mark
        if mark is None or mark - value > self._least * max(abs(mark), level - mark):
            self._mark, self._row, self._epoch = value, row.number, row.epoch or 0.0
            return None
        if self._raised or around.reinforced or row.number - self._row < _LEAST_ROWS:
            return None
        if self._passed(row, around) < self._share:
            return None
        self._raised = True
        return self._alarm(
            "plateau.share",
            EpisodeChange.WARNING,
            row,
            series,
            f"no better than {self._mark:.4g} since row {self._row}",
        ).at_most(Severity.NOTE)

    def _passed(self, row: WatchedRow, around: Surroundings) -> float:
        """The share of the run since the best value."""
        if around.total_epochs is not None and row.epoch is not None:
            return (row.epoch - self._epoch) / around.total_epochs
        if around.total_steps is None or row.step is None:
            return 0.0
        # The step of the best row is not kept: rows come evenly.
        since = (row.number - self._row) / row.number
        return row.step * since / around.total_steps


class Gradient(SeriesDetector):
    """The gradient norm against its own first rows and the training loss."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.role is MetricRole.GRADIENT

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._up = Episode(limits["gradient_blow_up.rows"])
        self._grows = Episode(1)  # `_rising` averages over the recent rows: persistence enough
        self._most = limits["gradient_blow_up.ratio"]
        self._growth = limits["gradient_blow_up.growth"]
        self._often, self._rising = limits["gradient_blow_up.rising"], 0.5
        self._down = Episode(limits["gradient_vanishing.rows"])

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        level, loss = series.level, around.training_loss
        # Share of rises, as a moving average: it starts at 0.5, where noise keeps it.
        self._rising += ((value > series.last) - self._rising) / _RECENT
        if level is None or series.count < 3:
            return None
        # A large gradient while the loss falls is progress, so the norm alone raises no alarm.
        worse = loss is None or not loss.count or loss.last > 1.05 * loss.best
        worse = worse and not around.rate_rose
        grows = value > self._growth * series.lowest and worse and self._rising >= self._often
        grown = self._grows.step(grows)
        if grown is not EpisodeChange.NOTHING:
            return self._of_level("gradient_blow_up.growth", grown, series, row, value)
        grown = self._up.step(worse and value > self._most * level)
        if grown is not EpisodeChange.NOTHING:
            return self._of_level("gradient_blow_up.ratio", grown, series, row, value)
        small = value < max(
            self._limits["gradient_vanishing.absolute"],
            self._limits["gradient_vanishing.ratio"] * level,
        )
        learned = (
            loss is not None
            and loss.level is not None
            and abs(loss.last) < _FINISHED * abs(loss.level)
        )
        gone = self._down.step(small and not learned)
        if gone is not EpisodeChange.NOTHING:
            return self._of_level("gradient_vanishing.ratio", gone, series, row, value)
        return None

    def _of_level(
        self,
        threshold: str,
        change: EpisodeChange,
        series: Series,
        row: WatchedRow,
        value: float,
    ) -> Alarm:
        message = f"{value:.4g}; the first rows had {series.level:.4g}"
        return self._alarm(threshold, change, row, series, message)
