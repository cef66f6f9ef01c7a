"""Detectors of how the run goes: time per row, memory, checkpoints, the learning rate."""

import math

from harness.detectors.alarm import Alarm, Point
from harness.detectors.base import (
    Episode,
    EpisodeChange,
    RunDetector,
    Series,
    SeriesDetector,
    Surroundings,
    Thresholds,
    WatchedMetric,
    Window,
    make_alarm,
)
from harness.detectors.metric_names import MetricRole
from harness.detectors.rows import WatchedRow
from harness.detectors.watch_settings import WatchSettings

_FEW_FALLS = 0.1
"""Of the rows: memory that seldom falls, from the first row on, will not stop by itself."""


class SlowRows(RunDetector):
    """Time between rows, by their own clock; steps back of the clock are ignored."""

    def __init__(self, settings: WatchSettings) -> None:
        self._limits = limits = settings.limits
        self._ratio, self._floor = limits["throughput_drop.ratio"], limits["throughput_drop.floor"]
        self._window = Window(16)
        self._episode = Episode(limits["throughput_drop.rows"])
        self._last: float | None = None

    def feed_event(self, row: WatchedRow) -> Alarm | None:
        if row.event in ("start", "attempt"):
            self._last = None
        return None

    def feed_row(self, row: WatchedRow, around: Surroundings) -> Alarm | None:
        before, self._last = self._last, row.seconds
        if before is None or row.seconds is None or row.seconds < before or row.episodic:
            return None
        took = row.seconds - before
        usual = self._window.median if self._window.count >= 4 else None
        slow = usual is not None and took > self._floor and took > self._ratio * usual
        # Slow rows stay out of the window: they would soon be the usual time.
        if not slow:
            self._window.add(took)
            if not self._episode.active:
                return None
        change = self._episode.step(slow)
        if change is EpisodeChange.NOTHING or usual is None:
            return None
        return make_alarm(
            "throughput_drop",
            change,
            row,
            metric="seconds a row",
            message=f"{took:.3g} s, usual {usual:.3g} s",
            evidence=(Point(row=row.number, place=row.place, value=took),),
            threshold="ratio",
            limits=self._limits,
        )


class LoggedThroughput(SeriesDetector):
    """A logged rate, e.g. tokens_per_second."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.role is MetricRole.THROUGHPUT

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._episode = Episode(limits["throughput_drop.rows"])
        self._usual: float | None = None

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        if series.window.count < 4:
            return None
        # Frozen while rows are slow: the window then fills with slow rows.
        if not self._episode.hits:
            self._usual = series.window.median
        usual = self._usual or 0.0
        change = self._episode.step(value * self._limits["throughput_drop.ratio"] < usual)
        if change is EpisodeChange.NOTHING:
            return None
        return self._alarm(
            "throughput_drop.ratio", change, row, series, f"{value:.4g}, usual {usual:.4g}", rows=5
        )


class MemoryCreep(SeriesDetector):
    """Memory grows in most rows and is well above where it started."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return metric.role is MetricRole.MEMORY

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits = limits
        self._rows = int(limits["memory_creep.rows"])
        self._rising = 0.0
        self._falls = 0
        self._raised = False

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        # A moving average over about `rows` rows, in O(1); four rows of steps count as one.
        if series.count:
            self._falls += value <= series.last
            rows = self._rows if around.by_epoch else 4 * self._rows
            self._rising += ((value > series.last) - self._rising) / min(series.count, rows)
        level = series.level
        if self._raised or level is None or level <= 0 or series.count < 2 * self._rows:
            return None
        rising = self._limits["memory_creep.rising"]
        if self._rising < rising or not self._grown(value / level - 1, series, row, around):
            return None
        self._raised = True
        return self._alarm(
            "memory_creep.growth",
            EpisodeChange.WARNING,
            row,
            series,
            f"{value:.4g}, started at {level:.4g}, rose in {self._rising:.0%} of the recent rows",
            rows=8,
        )

    def _grown(self, growth: float, series: Series, row: WatchedRow, around: Surroundings) -> bool:
        """Whether it grew far, or would by the planned end at the pace so far."""
        most = self._limits["memory_creep.growth"]
        if growth >= most:
            return True
        total = around.total_epochs
        if total is None or row.epoch is None or self._falls > _FEW_FALLS * series.count:
            return False
        ends = growth * total / (row.epoch + 1)
        return growth >= self._limits["memory_creep.so_far"] and ends >= most


class NoCheckpoint(RunDetector):
    """Epochs since the last checkpoint, where the plan has a cadence."""

    def __init__(self, settings: WatchSettings) -> None:
        self._limits = settings.limits
        every = settings.checkpoint_every
        self._most = None if every is None else every * self._limits["no_checkpoint.cadences"]
        self._first: float | None = None
        """The least epoch since the last checkpoint."""
        self._since = 0.0
        self._raised = False

    def feed_event(self, row: WatchedRow) -> Alarm | None:
        if row.event in ("start", "attempt"):
            # A resumed run continues from a checkpoint, and its epochs may go back to it.
            self._first = None
        if row.event != "checkpoint":
            return None
        raised, self._raised = self._raised, False
        self._first, self._since = None, 0.0
        return self._made(EpisodeChange.OVER, row, "one was saved") if raised else None

    def feed_row(self, row: WatchedRow, around: Surroundings) -> Alarm | None:
        if row.epoch is None or self._most is None:
            return None
        self._first = row.epoch if self._first is None else min(self._first, row.epoch)
        self._since = row.epoch - self._first + 1
        if self._since <= self._most or self._raised:
            return None
        self._raised = True
        return self._made(
            EpisodeChange.WARNING,
            row,
            f"none for {self._since:g} epochs, expected one within {self._most:g}",
        )

    def _made(self, change: EpisodeChange, row: WatchedRow, message: str) -> Alarm:
        point = Point(row=row.number, place=row.place, value=self._since)
        return make_alarm(
            "no_checkpoint",
            change,
            row,
            metric="checkpoint",
            message=message,
            evidence=(point,),
            threshold="cadences",
            limits=self._limits,
        )


_ENDED = 0.01
"""Of its peak: a rate below it came down by a schedule, not by a fault."""
_TAIL = 0.05
"""Of the rows: as long a schedule may stay at its end, which a log rounds to zero."""


class DeadLearningRate(RunDetector):
    """The learning rate is zero before the end of the run."""

    def __init__(self, settings: WatchSettings) -> None:
        self._limits = limits = settings.limits
        rows = limits["dead_learning_rate.rows"]
        # When the planned total is unknown, the run may be at its end: wait three rows longer.
        self._known, self._unknown = Episode(rows), Episode(rows + 3)
        self._faint = Episode(limits["dead_learning_rate.of_peak_rows"])
        self._least, self._peak = limits["dead_learning_rate.rate"], 0.0
        self._of_peak = limits["dead_learning_rate.of_peak"]
        self._rows = self._idle = 0
        """Rows with a rate, and those of them that train no more, in a row."""
        self._alive = 0.0
        """The newest rate that trains."""

    def _ends(self) -> bool:
        """Whether a schedule came down to this in its own time and may be at its end."""
        return self._alive <= _ENDED * self._peak and self._idle <= _TAIL * self._rows

    def feed_row(self, row: WatchedRow, around: Surroundings) -> Alarm | None:
        rate = row.learning_rate
        if rate is None or not math.isfinite(rate):
            return None
        size = abs(rate)
        if size > self._peak:
            self._peak = size
        dead = size <= self._least
        faint = size <= self._of_peak * self._peak
        self._rows += 1
        if dead or faint:
            self._idle += 1
        else:
            self._idle, self._alive = 0, size
        active = self._known.active or self._unknown.active or self._faint.active
        if not faint and not dead and not active:
            return None
        total = around.total_epochs  # the row's own epoch counts as done
        left = None if not total or row.epoch is None else (total - row.epoch - 1) / total
        steps = around.total_steps
        if left is None and steps and row.step is not None:
            left = (steps - row.step) / steps
        if left is None and (dead or faint) and self._ends():
            return None
        if left is None:
            episode = self._unknown if dead or self._unknown.raised else self._faint
            change = episode.step(dead or faint)
        else:
            least = self._limits[f"dead_learning_rate.{'left' if dead else 'of_peak_left'}"]
            if self._known.raised and faint:
                return None  # near its end it is as dead as before
            change = self._known.step((dead or faint) and left >= least)
        if change is EpisodeChange.NOTHING:
            return None
        return make_alarm(
            "dead_learning_rate",
            change,
            row,
            metric="learning_rate",
            message=f"{rate:g}"
            if left is None
            else f"{rate:g} with {left:.0%} of the epochs left",
            evidence=(Point(row=row.number, place=row.place, value=rate),),
            threshold="rate",
            limits=self._limits,
        )
