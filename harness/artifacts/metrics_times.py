"""When the rows of a run say that they were written."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from harness.artifacts.metrics_merge import Row
from harness.clock import parse_iso

SLACK_S = 5.0
"""Seconds by which a row's time may be off: stalls between reading the clock and writing, clocks
that are steered."""


class RowTimes(NamedTuple):
    first: datetime | None
    """The earliest; None when no row has a time."""
    last: datetime | None
    """The latest."""
    back_s: float
    """The largest step back in file order, seconds."""
    without: int
    """Rows whose `t` is missing or is no time."""


def time_of(row: Row) -> datetime | None:
    """The row's `t`; None when it is missing or no ISO 8601 time."""
    text = row.get("t")
    try:
        return parse_iso(text) if isinstance(text, str) else None
    except (ValueError, OverflowError):
        return None


def row_times(rows: Iterable[Row]) -> RowTimes:
    first = last = before = None
    back, without = 0.0, 0
    for row in rows:
        at = time_of(row)
        if at is None:
            without += 1
            continue
        if before is not None:
            back = max(back, (before - at).total_seconds())
        before = at
        first = at if first is None else min(first, at)
        last = at if last is None else max(last, at)
    return RowTimes(first, last, back, without)
