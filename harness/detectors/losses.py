"""Detectors of a loss: values that are not finite, divergence, spikes, repeated values, and a jump
at a resume."""

import math
from itertools import pairwise

from harness.detectors.alarm import Alarm, Severity
from harness.detectors.base import Change, Episode, Limits, Surroundings, make
from harness.detectors.keys import Role
from harness.detectors.rows import Row
from harness.detectors.series import Series
from harness.domain.words import some

_ENOUGH = 8
"""Values from which a median and a spread say something."""
_NEWEST = 6
"""Values before a resume; a longer past has a trend that hides a jump."""
_NORMAL_STEP = 0.954
"""The median absolute difference of two draws of the standard normal distribution: sqrt(2) *
0.6745."""
_FLOOR = 0.02
"""Of the median: the least spread, so that a smooth curve does not make every bend a spike."""
_SMALL = 0.05
"""Of the first level: a rise by less is no spike."""
_STEPS = 2
"""Rows of single steps are noisier than rows of epochs: as many times the persistence."""
_FINISHED = 0.02
"""Of the first level: a loss below this has converged; repeating or not moving is then no fault."""


class NonFinite:
    """Sees every value, also those that are not finite."""

    def __init__(self, role: Role, limits: Limits) -> None:
        self._limits = limits
        rows = limits["non_finite.gradient_rows" if role is Role.GRADIENT else "non_finite.rows"]
        self._asks = role in (Role.LOSS, Role.SCORE, Role.GRADIENT)
        self.episode = Episode(rows, limits["non_finite.fatal_rows"] if role is Role.LOSS else None)

    def feed_any(self, series: Series, row: Row, finite: bool) -> Alarm | None:
        if finite and not self.episode.active:
            return None
        change = self.episode.step(not finite)
        if change is Change.NOTHING:
            return None
        hits = self.episode.hits
        alarm = make(
            "non_finite",
            change,
            row,
            metric=series.key,
            message=(
                "finite again"
                if change is Change.OVER
                else f"not finite for {some(hits, 'row')}, since row {row.number - hits + 1}"
            ),
            evidence=series.evidence(max(hits, 1) + 1),
            threshold="fatal_rows" if change is Change.FATAL else "rows",
            limits=self._limits,
        )
        return alarm if self._asks else alarm.at_most(Severity.NOTE)


class Divergence:
    """Above the level of the first rows, or far above the best; judged by the median of the newest
    three values."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._start = limits["divergence.above_start"]
        self._best = limits["divergence.above_best"]
        self._episode = Episode(limits["divergence.rows"], limits["divergence.fatal_rows"])
        self._before = (float("-inf"), float("-inf"))

    def feed(self, series: Series, row: Row, value: float, around: Surroundings) -> Alarm | None:
        one, two = self._before
        self._before = (two, value)
        level = series.level
        if level is None or (value <= level and not self._episode.active) or series.count < 2:
            return None
        if level <= 0 or around.reinforced:
            return None
        now = sorted((one, two, value))[1]
        wrong = now > self._start * level or (now > self._best * series.best > 0 and now > level)
        change = self._episode.step(wrong and not around.rate_rose)
        if change is Change.NOTHING:
            return None
        return make(
            "divergence",
            change,
            row,
            metric=series.key,
            message=f"{now:.4g}, started at {level:.4g}, best {series.best:.4g}",
            evidence=series.evidence(4),
            threshold="fatal_rows" if change is Change.FATAL else "above_start",
            limits=self._limits,
        )


class Spike:
    """Outside of the recent spread. A return within some rows is a note; two rows outside are a
    warning."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._spreads, self._ratio = limits["loss_spike.spreads"], limits["loss_spike.ratio"]
        self._rows, self._recovery = limits["loss_spike.rows"], limits["loss_spike.recovery_rows"]
        self._height = 0.0
        self._bound = 0.0
        self._since = 0
        self._high = 0

    def feed(self, series: Series, row: Row, value: float, around: Surroundings) -> Alarm | None:
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
        self._since, self._high, self._height = 1, 1, value
        self._bound = median + 0.5 * self._spreads * spread
        return None

    def _inside(self, series: Series, row: Row, value: float, around: Surroundings) -> Alarm | None:
        self._since += 1
        self._height = max(self._height, value)
        if value <= self._bound:
            rows, self._since = self._since - 1, 0
            return self._made(
                "spike_recovered",
                Change.OVER,
                series,
                row,
                f"{self._height:.4g} for {some(rows, 'row')}, back at {value:.4g}",
            )
        self._high += 1
        if self._high == (self._rows if around.by_epoch else _STEPS * self._rows):
            return self._made(
                "loss_spike",
                Change.WARNING,
                series,
                row,
                f"{value:.4g}, usual below {self._bound:.4g}",
            )
        if self._since > self._recovery:
            # it is the new level now: the warning stands, later spikes are measured against it
            self._since = 0
        return None

    def _made(self, code: str, change: Change, series: Series, row: Row, message: str) -> Alarm:
        return make(
            code,
            change,
            row,
            metric=series.key,
            message=message,
            evidence=series.evidence(5),
            threshold="spreads",
            limits=self._limits,
        )


class Stall:
    """Repeats to the last bit. A loss of exactly 0, or one that has converged, is no fault."""

    def __init__(self, limits: Limits, *, later: bool = False) -> None:
        self._limits, self._later = limits, later
        self._rows, self._rounded = limits["stall.rows"], limits["stall.rounded_rows"]
        self._equal = 0
        self._raised = False

    def feed(self, series: Series, row: Row, value: float, around: Surroundings) -> Alarm | None:
        if value != series.last and not self._equal:
            return None
        if value != series.last or not value or _converged(series, value) or around.reinforced:
            over = self._raised and value != series.last
            self._equal, self._raised = 0, False
            return self._made(Change.OVER, series, row, "it moves again") if over else None
        self._equal += 1
        needed = self._rounded if round(value, 4) == value else self._rows
        if self._equal < needed or self._raised or (self._later and self._repeated(row, around)):
            return None
        self._raised = True
        return self._made(
            Change.WARNING, series, row, f"exactly {value!r} for {self._equal + 1} rows"
        )

    def _repeated(self, row: Row, around: Surroundings) -> bool:
        """Whether training went on: some loggers repeat the last evaluation until the next one."""
        training = around.training_loss
        return training is None or training.best_row >= row.number - self._equal

    def _made(self, change: Change, series: Series, row: Row, message: str) -> Alarm:
        return make(
            "stall",
            change,
            row,
            metric=series.key,
            message=message,
            evidence=series.evidence(min(self._equal + 1, 8)),
            threshold="rows",
            limits=self._limits,
        )


class Resume:
    """The first rows after a resume against the rows before it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._spreads, self._ratio = (
            limits["resume_discontinuity.spreads"],
            limits["resume_discontinuity.ratio"],
        )
        self._rows = int(limits["resume_discontinuity.rows"])
        self._left = 0
        self._bound = 0.0
        self._before = 0.0

    def resumed(self, series: Series) -> None:
        """The command was restarted: what follows is compared with what the series holds now."""
        if series.window.count < 4:
            return
        newest = [value for _, _, value in series.points if math.isfinite(value)][-_NEWEST:]
        if len(newest) < 2:
            return
        last = newest[-3:]
        self._before = sorted(last)[len(last) // 2]
        moves = sorted(abs(after - before) for before, after in pairwise(newest))
        spread = max(moves[len(moves) // 2] / _NORMAL_STEP, _FLOOR * abs(self._before))
        self._bound = max(self._before + self._spreads * spread, self._ratio * self._before)
        self._left = self._rows

    def feed(self, series: Series, row: Row, value: float, around: Surroundings) -> Alarm | None:
        if not self._left:
            return None
        self._left = self._left - 1 if value > self._bound else 0
        if self._left or value <= self._bound:
            return None
        return make(
            "resume_discontinuity",
            Change.WARNING,
            row,
            metric=series.key,
            message=(
                f"{value:.4g} after the resume; before it {self._before:.4g}, expected below"
                f" {self._bound:.4g}"
            ),
            evidence=series.evidence(self._rows + 3),
            threshold="spreads",
            limits=self._limits,
        )


def _converged(series: Series, value: float) -> bool:
    return series.level is not None and abs(value) < _FINISHED * abs(series.level)
