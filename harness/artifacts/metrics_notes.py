"""Faults to note in a run's rows, and when the rows were written."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from harness.artifacts.metrics_file import Metrics, Row, place, values
from harness.clock import parse_iso
from harness.domain.plain_text import one_line

REPEATED_ROWS = 20
"""Equal losses in a row that are noted: even on a plateau the last digits move."""
SLACK_S = 5.0
"""Seconds by which a row's time may be off: a stall before its write, or an adjusted clock."""
_LONGEST = 200


def notes_of(metrics: Metrics) -> list[str]:
    """In words: values that are not finite, a loss that repeats exactly, damaged lines, resumes."""
    notes = []
    if metrics.non_finite:
        first = metrics.first_bad_step
        where = "" if first is None else f", the first at {first:g}"
        notes.append(f"{metrics.non_finite} values are not finite{where}")
    notes += [
        f"{key} is exactly {stretch.value!r} in {stretch.rows} rows in a row, from"
        f" {_shown(stretch.first)} on"
        for key, stretch in repeated_losses(metrics.effective).items()
    ]
    if metrics.warnings:
        more = f" (and {len(metrics.warnings) - 1} more)" if len(metrics.warnings) > 1 else ""
        notes.append(metrics.warnings[0] + more)
    if metrics.notes:
        more = f" ({len(metrics.notes)} times in all)" if len(metrics.notes) > 1 else ""
        notes.append(metrics.notes[-1] + more)
    return notes + [
        f"a resume was not exact: {parts} not restored"
        for parts in not_restored(metrics.rows)[-1:]
    ]


def not_restored(rows: Iterable[Row]) -> list[str]:
    """The missing parts of each resume that was not exact, as the training named them."""
    resumes = []
    for row in rows:
        if row.get("event") == "resume" and row.get("exact") is not True:
            missing = row.get("missing")
            names = [str(name) for name in missing] if isinstance(missing, list) else []
            text = ", ".join(names) or "parts that it does not name"
            resumes.append(one_line(text, _LONGEST))
    return resumes


class Stretch(NamedTuple):
    """Rows in a row with one equal value."""

    value: float
    rows: int
    first: float | None
    """The place of its first row."""


def repeated_losses(rows: Iterable[Row]) -> dict[str, Stretch]:
    """Key with "loss" in its name -> its longest stretch, of REPEATED_ROWS or more."""
    going: dict[str, Stretch] = {}
    longest: dict[str, Stretch] = {}
    for row in rows:
        for key, value in values(row):
            if (
                "loss" not in key.lower()
                or isinstance(value, bool)
                or not isinstance(value, int | float)
            ):
                continue
            before = going.get(key)
            if before is not None and before.value == value:
                now = before._replace(rows=before.rows + 1)
            else:
                now = Stretch(value, 1, place(row))
            going[key] = now
            if now.rows >= max(REPEATED_ROWS, longest[key].rows if key in longest else 0):
                longest[key] = now
    return longest


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


def _shown(position: float | None) -> str:
    return "the start" if position is None else f"{position:g}"
