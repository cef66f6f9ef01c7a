"""Detectors that compare the replicas of one run: `replica-1/seconds` with the others' of the
row."""

import math
from typing import ClassVar

from harness.detectors.alarm import Alarm, Point
from harness.detectors.base import (
    Episode,
    EpisodeChange,
    RunDetector,
    Surroundings,
    make_alarm,
)
from harness.detectors.rows import WatchedRow
from harness.detectors.watch_settings import WatchSettings

_HEAD = "replica-"
_LEAST_S = 0.1
"""A round below it is no lag."""


class _Apart(RunDetector):
    """One replica's value is many times the median of the others', row after row."""

    value: ClassVar[str]

    def __init__(self, settings: WatchSettings) -> None:
        self._limits = limits = settings.limits
        self._ratio = limits[f"replica_apart.{self.value}"]
        self._floor = _LEAST_S if self.value == "seconds" else 0.0
        self._rows = limits["replica_apart.rows"]
        self._episodes: dict[str, Episode] = {}

    def feed_row(self, row: WatchedRow, around: Surroundings) -> Alarm | None:
        if _HEAD not in "\n".join(row.metrics):  # quicker than a look at each name
            return None
        tail = f"/{self.value}"
        held = {
            key: value
            for key, value in row.metrics.items()
            if key.startswith(_HEAD) and key.endswith(tail) and math.isfinite(value)
        }
        if len(held) < 2:
            return None
        for key, value in held.items():
            others = sorted(other for name, other in held.items() if name != key)
            usual = others[(len(others) - 1) // 2]
            episode = self._episodes.setdefault(key, Episode(self._rows))
            change = episode.step(value > self._floor and value > self._ratio * usual)
            if change is not EpisodeChange.NOTHING:
                return make_alarm(
                    "replica_apart",
                    change,
                    row,
                    metric=key,
                    message=f"{value:.3g}, the others {usual:.3g}",
                    evidence=(Point(row=row.number, place=row.place, value=value),),
                    threshold=self.value,
                    limits=self._limits,
                )
        return None


class ReplicaLags(_Apart):
    value = "seconds"


class ReplicaDrifts(_Apart):
    value = "drift"
