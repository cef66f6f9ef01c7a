"""Does a run trail what it builds on, at the same place of the training?"""

import math
from statistics import fmean, stdev

from harness.detectors.alarm import Alarm, Point, Severity
from harness.detectors.base import Episode, EpisodeChange, RunDetector, Surroundings, make_alarm
from harness.detectors.rows import WatchedRow
from harness.detectors.watch_settings import WatchSettings
from harness.domain.statuses import Direction

CODE = "behind_parent"
_LEAST = 2
"""Seeds of the parent that reached the place: one has no spread."""


class BehindParent(RunDetector):
    """A value of the plan's metric is worse than every seed of the parent had it there, and beyond
    their spread, row after row. Told once, as a note: it is no fault of the training."""

    def __init__(self, settings: WatchSettings) -> None:
        self._parent = settings.parent
        self._signs = {
            name: 1.0 if direction is Direction.MAXIMIZE else -1.0
            for name, direction in settings.directions.items()
        }
        self._limits = settings.limits
        self._spreads = self._limits[f"{CODE}.spreads"]
        self._episodes: dict[str, Episode] = {}
        self._told = False

    def feed_row(self, row: WatchedRow, around: Surroundings) -> Alarm | None:
        if not self._parent or self._told or row.place is None:
            return None
        for key in self._parent:
            value = row.metrics.get(key)
            there = self._parent[key].get(row.place, ())
            if value is None or len(there) < _LEAST or not math.isfinite(value):
                continue
            sign = self._signs[key]
            mean, spread = fmean(there), stdev(there)
            worst = min(sign * one for one in there)
            least = min(worst, sign * mean - self._spreads * spread)
            episode = self._episodes.setdefault(key, Episode(self._limits[f"{CODE}.rows"]))
            if episode.step(sign * value < least) is EpisodeChange.WARNING:
                self._told = True
                return self._told_of(row, key, value, mean, spread, len(there))
        return None

    def _told_of(
        self, row: WatchedRow, key: str, value: float, mean: float, spread: float, seeds: int
    ) -> Alarm:
        return make_alarm(
            CODE,
            EpisodeChange.WARNING,
            row,
            metric=key,
            message=f"{value:.4g} here, {mean:.4g} +- {spread:.2g} there over {seeds} seeds",
            evidence=(Point(row=row.number, place=row.place, value=value),),
            threshold="spreads",
            limits=self._limits,
        ).at_most(Severity.NOTE)
