"""Onset of a fault, what the watch said, and the figures that follow."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.detectors.watch import RunWatch

Rows = Sequence[Mapping[str, Any]]
_WIDEN, _LEAST = 1.0, 0.05
"""The band of the twins is widened by its own width to each side, and by a part of its middle."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    onset: int | None
    """First report that leaves the band of the clean twins, from 0; None: none does."""
    said: tuple[tuple[str, int], ...]
    """Codes of warnings and fatal alarms with the report at which they came."""

    def hit(self, codes: Sequence[str], injected: int) -> int | None:
        """The report of the first alarm that names the fault, at or after its injection."""
        return next((row for code, row in self.said if code in codes and row >= injected), None)


def alarms(rows: Rows, *, notes: bool = False) -> tuple[tuple[str, int], ...]:
    """Warnings and fatal alarms, or the notes, with the number of the report, from 0."""
    watch, reports, said = RunWatch(), 0, []
    for row in rows:
        said += [
            (alarm.code, reports)
            for alarm in watch.feed(row)
            if (not (alarm.open or alarm.recovered) if notes else alarm.open)
        ]
        reports += row["event"] == "epoch"
    return tuple(said)


def onset(rows: Rows, twins: Sequence[Rows]) -> int | None:
    """The first report of which a value is outside of what the twins had at that report."""
    bands = [_channels(twin) for twin in twins]
    for number, report in enumerate(_channels(rows)):
        others = [band[number] for band in bands if number < len(band)]
        if others and any(
            _outside(value, [o[key] for o in others if key in o], key)
            for key, value in report.items()
        ):
            return number
    return None


def _channels(rows: Rows) -> list[dict[str, float]]:
    found: list[dict[str, float]] = []
    last = 0.0
    for row in rows:
        if row["event"] == "epoch":
            rate = row.get("learning_rate")
            found.append(
                {**row["metrics"], "seconds": row["t"] - last}
                | ({} if rate is None else {"rate": rate})
            )
        last = row.get("t", last)
    return found


def _outside(value: float, band: Sequence[float], key: str) -> bool:
    if not band:
        return False
    if not math.isfinite(value):
        return True
    low, high = min(band), max(band)
    if key == "seconds":
        return (
            value > 3 * high + 0.1
        )  # processor time on a shared machine: only a large change is one
    wide = _WIDEN * (high - low) + _LEAST * abs(high + low) / 2
    return not low - wide <= value <= high + wide


def wilson(hits: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """The score interval of a share (Wilson 1927), at 95%."""
    if not count:
        return 0.0, 1.0
    share, square = hits / count, z * z / count
    middle, half = (
        share + square / 2,
        z * math.sqrt(share * (1 - share) / count + square / (4 * count)),
    )
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))
