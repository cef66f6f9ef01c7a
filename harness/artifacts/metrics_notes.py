"""Faults to note in a run's rows, and when the rows were written."""

import math
from datetime import datetime
from typing import NamedTuple

from harness.artifacts.held_rows import Metrics
from harness.artifacts.metrics_file import Row, place, values
from harness.artifacts.resume_check import ResumeCheck
from harness.clock import parse_iso

REPEATED_ROWS = 20
"""Equal losses in a row that are noted: even on a plateau the last digits move."""
SLACK_S = 5.0
"""Seconds by which a row's time may be off: a stall before its write, or an adjusted clock."""
_LONGEST = 200
_MOST_KEYS = 10_000


class MetricsNotes:
    """Said in words: values that are not finite, a loss that repeats exactly, damaged lines,
    resumes."""

    def __init__(self) -> None:
        self.non_finite = 0
        self.first_bad_place: float | None = None
        self._repeated = RepeatedLosses()
        self._resumes = ResumeCheck()

    def look(self, row: Row) -> None:
        """Each row of the file."""
        self._resumes.take(row)

    def take(self, row: Row) -> None:
        """Each row that holds."""
        self._repeated.take(row)
        bad = bad_values(row)
        if bad and self.first_bad_place is None:
            self.first_bad_place = place(row)
        self.non_finite += bad

    def of(self, metrics: Metrics) -> list[str]:
        notes = []
        if self.non_finite:
            first = self.first_bad_place
            where = "" if first is None else f", the first at {first:g}"
            notes.append(f"{self.non_finite} values are not finite{where}")
        notes += [
            f"{key} is exactly {stretch.value!r} in {stretch.rows} rows in a row, from"
            f" {_shown(stretch.first)} on"
            for key, stretch in self._repeated.longest.items()
        ]
        if metrics.warnings:
            others = len(metrics.warnings) - 1 + metrics.more_warnings
            more = f" (and {others} more)" if others else ""
            notes.append(metrics.warnings[0] + more)
        if metrics.resumed:
            more = f" ({metrics.resumed} times in all)" if metrics.resumed > 1 else ""
            notes.append(f"resumed at {metrics.resumed_at}" + more)
        if (why := self._resumes.newest) is not None:
            notes.append(f"a resume was not exact: {why}")
        return notes


def bad_values(row: Row) -> int:
    """How many of its values are not finite."""
    return sum(
        1 for _, value in values(row) if isinstance(value, float) and not math.isfinite(value)
    )


class Stretch(NamedTuple):
    """Rows in a row with one equal value."""

    value: float
    rows: int
    first: float | None
    """The place of its first row."""


class RepeatedLosses:
    """Fed with the rows that hold, in order."""

    def __init__(self) -> None:
        self._going: dict[str, Stretch] = {}
        self.longest: dict[str, Stretch] = {}
        """Key with "loss" in its name -> its longest stretch, of REPEATED_ROWS or more."""

    def take(self, row: Row) -> None:
        for key, value in values(row):
            if (
                "loss" not in key.lower()
                or isinstance(value, bool)
                or not isinstance(value, int | float)
            ):
                continue
            before = self._going.get(key)
            if before is not None and before.value == value:
                now = before._replace(rows=before.rows + 1)
            elif before is None and len(self._going) >= _MOST_KEYS:
                continue
            else:
                now = Stretch(value, 1, place(row))
            self._going[key] = now
            known = self.longest.get(key)
            if now.rows >= max(REPEATED_ROWS, 0 if known is None else known.rows):
                self.longest[key] = now


class RowTimes(NamedTuple):
    """When the rows say that they were written."""

    first: datetime | None
    """The earliest; None when no row has a time."""
    last: datetime | None
    """The latest."""
    back_s: float
    """The largest step back in file order, seconds."""
    without: int
    """Rows whose `t` is missing or not a time."""


def time_of(row: Row) -> datetime | None:
    """The row's `t`; None when it is missing or not an ISO 8601 time."""
    text = row.get("t")
    try:
        return parse_iso(text) if isinstance(text, str) else None
    except (ValueError, OverflowError):
        return None


class TimesOfRows:
    """Fed with all rows, in order."""

    def __init__(self) -> None:
        self._first: datetime | None = None
        self._last: datetime | None = None
        self._before: datetime | None = None
        self._back_s = 0.0
        self._without = 0

    def look(self, row: Row) -> None:
        at = time_of(row)
        if at is None:
            self._without += 1
            return
        if self._before is not None:
            self._back_s = max(self._back_s, (self._before - at).total_seconds())
        self._before = at
        self._first = at if self._first is None else min(self._first, at)
        self._last = at if self._last is None else max(self._last, at)

    def times(self) -> RowTimes:
        return RowTimes(self._first, self._last, self._back_s, self._without)


def _shown(position: float | None) -> str:
    return "the start" if position is None else f"{position:g}"
