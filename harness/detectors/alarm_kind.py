"""What a row of the table of kinds holds."""

from collections.abc import Mapping
from typing import NamedTuple


class Threshold(NamedTuple):
    value: float
    unit: str
    source: str


class AlarmKind(NamedTuple):
    meaning: str
    thresholds: Mapping[str, Threshold]
    tries: tuple[str, ...]
    detectors: tuple[str, ...]
    """Classes, as "module:name"; imported when a watch begins, not with this table."""


def persistent(count: float, what: str = "rows in a row until the warning") -> Threshold:
    """A threshold of rows: one row decides nothing."""
    why = "persistence before an alarm: one row decides nothing (measured)"
    return Threshold(count, what, why)
