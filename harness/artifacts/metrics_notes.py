"""What a person should know about a run's metrics although it decides nothing: its score is
recomputed anyway."""

from collections.abc import Iterable
from typing import NamedTuple

from harness.artifacts.metrics import Metrics
from harness.artifacts.metrics_merge import Row, place, values

REPEATED_ROWS = 20
"""A loss that is exactly the same in so many rows in a row is a fault sign, apart from a
plateau."""
_LONGEST = 200


def notes_of(metrics: Metrics) -> list[str]:
    """In words: values that are not finite, a loss that repeats exactly, damaged lines, resumes."""
    found = []
    if metrics.non_finite:
        where = (
            "" if metrics.first_bad_step is None else f", the first at {metrics.first_bad_step:g}"
        )
        found.append(f"{metrics.non_finite} values are not finite{where}")
    found += [
        f"{key} is exactly {stretch.value!r} in {stretch.rows} rows in a row, from"
        f" {_shown(stretch.first)} on"
        for key, stretch in repeated_losses(metrics.effective).items()
    ]
    if metrics.warnings:
        more = f" (and {len(metrics.warnings) - 1} more)" if len(metrics.warnings) > 1 else ""
        found.append(metrics.warnings[0] + more)
    if metrics.notes:
        more = f" ({len(metrics.notes)} times in all)" if len(metrics.notes) > 1 else ""
        found.append(metrics.notes[-1] + more)
    return found + [
        f"a resume was not exact: {parts} not put back" for parts in not_put_back(metrics.rows)[-1:]
    ]


def not_put_back(rows: Iterable[Row]) -> list[str]:
    """Of each resume that was not exact, in the words of the training, the parts that are not as
    they were saved."""
    found = []
    for row in rows:
        if row.get("event") == "resume" and row.get("exact") is not True:
            missing = row.get("missing")
            names = [str(name) for name in missing] if isinstance(missing, list) else []
            text = ", ".join(names) or "parts that it does not name"
            found.append("".join(char if char.isprintable() else " " for char in text)[:_LONGEST])
    return found


class Stretch(NamedTuple):
    value: float
    rows: int
    first: float | None
    """The place of its first row."""


def repeated_losses(rows: Iterable[Row]) -> dict[str, Stretch]:
    """Each key with "loss" in its name -> its longest stretch of equal values, of at least
    REPEATED_ROWS rows."""
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


def _shown(position: float | None) -> str:
    return "the start" if position is None else f"{position:g}"
