"""Detectors of learning: no progress, a plateau, overfitting, gradients that vanish or blow up."""

import math

from harness.detectors.alarm import Alarm, Severity
from harness.detectors.base import Change, Episode, Limits, Surroundings, make
from harness.detectors.rows import Row
from harness.detectors.series import Series

_FINISHED = 0.02
_STEPS = 8
_RECENT = 8
_LEAST_ROWS = 10
"""Without a new best, until it is a plateau."""
_LEARNED = 0.15
"""Of the first level: a loss on other rows below this has learned, whatever training does."""
_OFTEN = 0.5
"""Of the rows: a loss with more new bests descends, however slowly."""
_FALLS = 3
"""So many falls in a row are a descent: 1 of 24 for noise."""
GUESS = 0.6
"""An accuracy above this is not a guess among two classes or more."""


class NoProgress:
    """The training loss is where it started."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._improvement = limits["no_progress.improvement"]
        self._rows, self._share = limits["no_progress.flat_rows"], limits["no_progress.share"]
        self._raised = False

    def feed(self, series: Series, row: Row, value: float, around: Surroundings) -> Alarm | None:
        level = series.level
        if level is None or series.count < self._rows:
            return None
        if not self._raised and series.window.median < (1 - self._improvement) * level:
            return None
        if around.reinforced or not self._enough(series, row, around):
            return None
        improved = (level - series.window.median) / abs(level) if level else 0.0
        descends = series.records > _OFTEN * series.count
        flat = improved < self._improvement and level > 0 and not descends and not around.knows
        if flat == self._raised:
            return None
        self._raised = flat
        return make(
            "no_progress",
            Change.WARNING if flat else Change.OVER,
            row,
            metric=series.key,
            message=f"{value:.4g} after {series.count + 1} rows, started at {level:.4g}",
            evidence=series.evidence(4),
            threshold="improvement",
            limits=self._limits,
        )

    def _enough(self, series: Series, row: Row, around: Surroundings) -> bool:
        """Rows that carry a step alone come more often than epochs, and each shows less."""
        rows = self._rows if around.by_epoch else _STEPS * self._rows
        total, epoch = around.total_epochs, row.epoch
        return series.count >= rows and (
            total is None or epoch is None or epoch >= self._share * total
        )


class Chance:
    """Accuracy and loss of one split are those of a uniform guess: loss = -ln(accuracy) =
    ln(classes)."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._distance = limits["no_progress.chance"]
        self.episode = Episode(limits["no_progress.rows"])

    def feed_pair(
        self, accuracy: Series, loss: Series, row: Row, values: tuple[float, float]
    ) -> Alarm | None:
        hit, paid = values
        if hit >= GUESS and not self.episode.active:
            return None
        guess = 0 < hit < GUESS and paid > 0 and abs(paid + math.log(hit)) < self._distance * paid
        change = self.episode.step(guess and loss.falls < _FALLS)
        if change is Change.NOTHING:
            return None
        return make(
            "no_progress",
            change,
            row,
            metric=accuracy.key,
            message=(
                f"{hit:.4g} with a loss of {paid:.4g}: a uniform guess among {1 / hit:.3g} classes"
                if guess
                else "no guess"
            ),
            evidence=accuracy.evidence(self.episode.hits or 1),
            threshold="chance",
            limits=self._limits,
        )


class Absurd:
    """A cross-entropy beside an accuracy that is far above any guess: logits have exploded."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.most = limits["divergence.nats"]
        self.episode = Episode(limits["divergence.rows"])

    def feed_pair(self, loss: Series, row: Row, paid: float) -> Alarm | None:
        if paid <= self.most and not self.episode.active:
            return None
        change = self.episode.step(paid > self.most)
        if change is Change.NOTHING:
            return None
        return make(
            "divergence",
            change,
            row,
            metric=loss.key,
            message=f"{paid:.4g} nats; a guess among 50,000 classes has 10.8",
            evidence=loss.evidence(4),
            threshold="nats",
            limits=self._limits,
        )


class Plateau:
    """No better training loss for a long part of the run; a note."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._share = limits["plateau.share"]
        self._raised = False

    def feed(self, series: Series, row: Row, value: float, around: Surroundings) -> Alarm | None:
        total, epoch, best = around.total_epochs, row.epoch, series.best_epoch
        if self._raised or total is None or epoch is None or best is None or around.reinforced:
            return None
        if row.number - series.best_row < _LEAST_ROWS or epoch - best < self._share * total:
            return None
        self._raised = True
        return make(
            "plateau",
            Change.WARNING,
            row,
            metric=series.key,
            message=f"no better than {series.best:.4g} since row {series.best_row}",
            evidence=series.evidence(4),
            threshold="share",
            limits=self._limits,
        ).at_most(Severity.NOTE)


class Overfit:
    """One value on other rows, by its own direction, against the training loss."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._improves = limits["overfit.improves"]
        self._worse = {1: limits["overfit.worse"], -1: limits["overfit.worse_score"]}
        self._episode = Episode(limits["overfit.rows"])
        self._at_best: float | None = None
        """The training loss where this value was best."""

    def feed(self, series: Series, row: Row, value: float, around: Surroundings) -> Alarm | None:
        training = around.training_loss
        if training is None or not training.count or around.reinforced:
            return None
        if not series.count or (series.best - value) * series.sign > 0:
            self._at_best = training.last
        best, before = series.best, self._at_best
        if not series.count or before is None:
            return None
        worse = (value - best) * series.sign > self._worse[series.sign] * abs(best)
        wrong = worse and before - training.last > self._improves * abs(before)
        if series.sign > 0 and not wrong:
            wrong = self._memorized(series, row, value, training, before)
        if not wrong and not self._episode.active:
            return None
        change = self._episode.step(wrong)
        if change is Change.NOTHING:
            return None
        return make(
            "overfit",
            change,
            row,
            metric=series.key,
            message=(
                f"{value:.4g}, best {best:.4g} (row {series.best_row}); {training.key} went from"
                f" {before:.4g} on to {training.last:.4g}"
            ),
            evidence=series.evidence(5),
            threshold="worse" if series.sign > 0 else "worse_score",
            limits=self._limits,
        )

    def _memorized(
        self, series: Series, row: Row, value: float, training: Series, before: float
    ) -> bool:
        """Training halves and is far below, while this loss has stopped at a part of where it
        began."""
        level = series.level
        return (
            row.number - series.best_row >= 2
            and level is not None
            and value > max(self._limits["overfit.gap"] * training.last, _LEARNED * level)
            and 0 < training.last < (1 - self._limits["overfit.memorizes"]) * before
        )


class Gradient:
    """The norm against its own first rows, and the training loss."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._up = Episode(limits["gradient_blow_up.rows"])
        self._grows = Episode(1)  # the average over the recent rows is persistence enough
        self._most, self._growth = (
            limits["gradient_blow_up.ratio"],
            limits["gradient_blow_up.growth"],
        )
        self._often, self._rising = limits["gradient_blow_up.rising"], 0.5
        self._down = Episode(limits["gradient_vanishing.rows"])

    def feed(self, series: Series, row: Row, value: float, around: Surroundings) -> Alarm | None:
        level, loss = series.level, around.training_loss
        self._rising += ((value > series.last) - self._rising) / _RECENT
        if level is None or series.count < 3:
            return None
        worse = loss is None or not loss.count or loss.last > 1.05 * loss.best
        grows = value > self._growth * series.lowest and worse and self._rising >= self._often
        grown = self._grows.step(grows)
        if grown is not Change.NOTHING:
            return self._made("gradient_blow_up", grown, "growth", series, row, value)
        grown = self._up.step(worse and value > self._most * level)
        if grown is not Change.NOTHING:
            return self._made("gradient_blow_up", grown, "ratio", series, row, value)
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
        if gone is not Change.NOTHING:
            return self._made("gradient_vanishing", gone, "ratio", series, row, value)
        return None

    def _made(
        self, code: str, change: Change, threshold: str, series: Series, row: Row, value: float
    ) -> Alarm:
        return make(
            code,
            change,
            row,
            metric=series.key,
            message=f"{value:.4g}; the first rows had {series.level:.4g}",
            evidence=series.evidence(4),
            threshold=threshold,
            limits=self._limits,
        )
