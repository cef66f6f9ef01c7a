"""Detectors of how much a row holds: samples, steps, time."""

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
from harness.detectors.metric_names import counts_samples
from harness.detectors.rows import WatchedRow
from harness.detectors.watch_settings import WatchSettings

_ENOUGH = 6
"""Rows from which on a usual row is known."""


class FewSamples(SeriesDetector):
    """A logged count, e.g. samples or batches of an epoch."""

    @staticmethod
    def watches(metric: WatchedMetric) -> bool:
        return counts_samples(metric.key) and not metric.later

    def __init__(self, metric: WatchedMetric, limits: Thresholds) -> None:
        self._limits, self._share = limits, limits["short_rows.share"]
        self._episode = Episode(limits["short_rows.rows"])
        self._usual = 0.0

    def feed(
        self, series: Series, row: WatchedRow, value: float, around: Surroundings
    ) -> Alarm | None:
        if series.window.count < _ENOUGH:
            return None
        # Frozen while rows are short: the window then fills with short rows.
        if not self._episode.active:
            self._usual = series.window.median
        change = self._episode.step(value < self._share * self._usual)
        if change is EpisodeChange.NOTHING:
            return None
        told = f"{value:.4g}, usual {self._usual:.4g}"
        return self._alarm("short_rows.share", change, row, series, told, rows=6)


class _Size:
    """One size of a row against the usual one."""

    def __init__(self, rows: float) -> None:
        self._window = Window(16)
        self.episode = Episode(rows)
        self.usual = 0.0

    def step(self, size: float, share: float, floor: float) -> EpisodeChange:
        window = self._window
        self.usual = window.median
        known = window.count >= _ENOUGH
        short = known and self.usual >= floor and size < share * self.usual
        # Short rows stay out of the window: they would soon be the usual ones.
        if not short:
            window.add(size)
        return self.episode.step(short)


class ShortRows(RunDetector):
    """Steps of an epoch, and the time of a row, by the rows' own counters."""

    def __init__(self, settings: WatchSettings) -> None:
        self._limits = limits = settings.limits
        self._share, self._faster = limits["short_rows.share"], 1 / limits["short_rows.faster"]
        self._floor = limits["short_rows.floor"]
        rows = limits["short_rows.rows"]
        self._steps, self._seconds = _Size(rows), _Size(rows + 1)
        self._before: WatchedRow | None = None

    def feed_event(self, row: WatchedRow) -> Alarm | None:
        if row.event in ("start", "attempt"):
            self._before = None
        return None

    def feed_row(self, row: WatchedRow, around: Surroundings) -> Alarm | None:
        before, self._before = self._before, row
        if before is None:
            return None
        next_epoch = row.epoch is not None and row.epoch - 1 == before.epoch
        if next_epoch and row.step is not None and before.step is not None:
            made = row.step - before.step
            change = self._steps.step(made, self._share, 2) if made > 0 else EpisodeChange.NOTHING
            if change is not EpisodeChange.NOTHING:
                return self._told(change, row, "steps a row", made, self._steps.usual, "share")
        if row.seconds is None or before.seconds is None or row.seconds < before.seconds:
            return None
        took = row.seconds - before.seconds
        change = self._seconds.step(took, self._faster, self._floor)
        if change is EpisodeChange.NOTHING:
            return None
        return self._told(change, row, "seconds a row", took, self._seconds.usual, "faster")

    def _told(
        self,
        change: EpisodeChange,
        row: WatchedRow,
        what: str,
        size: float,
        usual: float,
        threshold: str,
    ) -> Alarm:
        return make_alarm(
            "short_rows",
            change,
            row,
            metric=what,
            message=f"{size:.3g}, usual {usual:.3g}",
            evidence=(Point(row=row.number, place=row.place, value=size),),
            threshold=threshold,
            limits=self._limits,
        )
