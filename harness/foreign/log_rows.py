"""One row of a log: counters, numbers under `metrics`, a time."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from harness.domain.plain_text import plain_name

Row = dict[str, Any]

COUNTERS = {
    "step": "step",
    "global_step": "step",
    "iteration": "step",
    "iter": "step",
    "_step": "step",
    "trainer/global_step": "step",
    "epoch": "epoch",
}
"""Names that loggers give to the counters that place a row."""
_TIMES = frozenset({"t", "time", "timestamp", "_timestamp", "wall_time", "ts", "datetime"})
_RATES = frozenset({"learning_rate", "lr"})
_TIME, _RATE, _METRIC = "time", "rate", "metric"
_MOST_NAMES = 10_000
_roles: dict[str, str] = {}
_MOST_METRICS = 500
_LONGEST_NUMBER = 40
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?(?:[eE][-+]?\d+)?")


def as_number(value: Any) -> float | int | None:
    """`value` as a number, also from text such as "nan", "1e-3" or "12,345"; else None.

    A comma groups thousands, so "0,93" is no number. An integer beyond 64 bits becomes a float.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return value if isinstance(value, float) or -(2**63) <= value < 2**63 else _as_float(value)
    if not isinstance(value, str) or len(value) > _LONGEST_NUMBER:
        return None
    text = value.strip()
    if "," in text:
        if not _GROUPED.fullmatch(text):
            return None
        text = text.replace(",", "")
    try:
        return as_number(int(text)) if text.lstrip("+-").isdecimal() else float(text)
    except ValueError:
        return None


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def whole(number: float) -> float | int:
    """A finite counter as an integer, when it is one of at most 64 bits."""
    return int(number) if number == int(number) and abs(number) < 2**63 else number


def make_row(pairs: Iterable[tuple[str, Any]]) -> Row | None:
    """A row of the values that are numbers; None when there is none."""
    # NaN as a counter or a rate places nothing: it stays visible among the metrics.
    row: Row = {}
    metrics: dict[str, float] = {}
    for name, value in pairs:
        role = _roles.get(name) or _role(name)
        number = value if type(value) is float else as_number(value)
        if role is _TIME:
            if "t" not in row and isinstance(value, str | int | float):
                row["t"] = value if number is None else number
        elif number is None:
            continue
        elif role is _METRIC or not math.isfinite(number):
            if len(metrics) < _MOST_METRICS:
                metrics[plain_name(name)] = number
        elif role is _RATE:
            row.setdefault("learning_rate", number)
        else:
            row.setdefault(role, whole(number))
    return {**row, "metrics": metrics} if metrics or "learning_rate" in row else None


def _role(name: str) -> str:
    """What a value of this name is for, remembered: each row repeats the same few names."""
    key = name.lower()
    role = _TIME if key in _TIMES else _RATE if key in _RATES else COUNTERS.get(key, _METRIC)
    if len(_roles) < _MOST_NAMES:
        _roles[name] = role
    return role


def flattened(plain: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """The entries of an object: of an inner one as "outer/inner", of `metrics` as they are."""
    for key, value in plain.items():
        if isinstance(value, Mapping) and not prefix:
            yield from flattened(value, "" if key == "metrics" else f"{key}/")
        elif not isinstance(value, Mapping):
            yield f"{prefix}{key}", value


def position(row: Row) -> float | None:
    """The number that places a row: its step, else its epoch; for the run logger its epoch."""
    names = ("epoch",) if row.get("event") == "epoch" else ("step", "epoch")
    return next((value for name in names if (value := row.get(name)) is not None), None)
