"""One row of a log: its position, numbers under `metrics`, a time."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from harness.domain.plain_text import plain_name
from harness.foreign.names import Kind, Meaning, meaning, unplaced

Row = dict[str, Any]

_MOST_METRICS = 500
_LONGEST_NUMBER = 40
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?(?:[eE][-+]?\d+)?")
_TAGS = frozenset(
    {"name", "metric", "metric_name", "key", "tag"},
)
_DEEPEST = 6
_SETTINGS = frozenset(
    {"config", "params", "args", "hparams", "hyperparameters", "user_attrs"},
)
_YEAR_1973 = 1e8
_MILLISECONDS = 1e11
"""Unix seconds are less, Unix milliseconds more."""


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
    if "_" in text:
        return None
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


def make_row(
    pairs: Iterable[tuple[str, Any]],
    place: Row | None = None,
) -> Row | None:
    """A row of the values that are numbers; None when none of them is a value.

    `unit` says what `step` counts when that is no step. A row with a position and a total, and
    nothing else, says where the training is. With `place`, its counters place the row.
    """
    row: Row = dict(place or {})
    metrics: dict[str, float] = {}
    places: list[tuple[Meaning, str, float]] = []
    for name, value in pairs:
        found = meaning(name)
        kind = found.kind
        number = value if type(value) is float else as_number(value)
        if number is None or kind is Kind.TIME or kind is Kind.CLOCK:
            _no_value(row, metrics, (name, kind), value, number)
        elif kind is Kind.METRIC or not math.isfinite(number):
            # NaN as a counter or a rate places nothing: it stays visible among the metrics.
            if len(metrics) < _MOST_METRICS and kind is not Kind.PROGRESS:
                metrics[plain_name(name)] = number
        elif kind is Kind.RATE:
            row.setdefault("learning_rate", number)
        elif kind in (Kind.EPOCH, Kind.BATCH):
            row.setdefault(kind.name.lower(), whole(number))
        elif kind is not Kind.PROGRESS:
            places.append((found, name, number))
    if places:
        _place(row, metrics, places)
    if metrics or "learning_rate" in row:
        return {**row, "metrics": metrics}
    known = "step" in row and "total_steps" in row
    return {**row, "event": "status"} if known else None


def _no_value(
    row: Row,
    metrics: dict[str, float],
    named: tuple[str, Kind],
    value: Any,
    number: float | None,
) -> None:
    """Keep a time; what is neither a number nor a time is nothing."""
    name, kind = named
    if kind is Kind.CLOCK and number is not None and not number > _YEAR_1973:
        if not math.isnan(number):
            metrics[plain_name(name)] = number
        return
    timed = kind in (Kind.TIME, Kind.CLOCK)
    if not timed or "t" in row or not isinstance(value, str | int | float):
        return
    if number is not None and number > _MILLISECONDS:
        number = number / 1000
    row["t"] = value if number is None else number


def _place(
    row: Row,
    metrics: dict[str, float],
    places: list[tuple[Meaning, str, float]],
) -> None:
    """Choose the position of the row among the counters in it."""
    totals = [each for each in places if each[0].kind is Kind.TOTAL]
    steps = [each for each in places if each[0].kind is Kind.POSITION]
    placed = not row.keys().isdisjoint(("step", "epoch", "batch"))
    if not steps and not placed:
        steps = [each for each in places if each[0].kind is Kind.AXIS]
    if not steps and not placed:
        # In reinforcement learning `total_steps` often counts what was done.
        steps, totals = [each for each in totals if each[0].unit == "step"][:1], []
    chosen = min(
        steps,
        key=lambda each: each[0].rank,
        default=None,
    )
    if "step" in row:
        chosen = None
    if chosen is not None:
        row["step"] = whole(chosen[2])
        if chosen[0].unit != "step":
            row["unit"] = chosen[0].unit
    for found, _, number in totals:
        unit = "epoch" if found.unit == "epoch" else "step"
        if number > 0:
            row.setdefault(f"total_{unit}s", whole(number))
    for each in places:
        name = each[1]
        kept = each is not chosen and each[0].kind is not Kind.TOTAL
        if kept and unplaced(name).kind is Kind.METRIC:
            metrics[plain_name(name)] = each[2]


def flattened(
    plain: Mapping[str, Any],
    prefix: str = "",
) -> Iterable[tuple[str, Any]]:
    """The entries of an object: of an inner one as "outer/inner", of `metrics` as they are.

    Settings of the training are no values of it.
    """
    for key, value in plain.items():
        if not isinstance(value, Mapping):
            yield f"{prefix}{key}", value
        elif key not in _SETTINGS and prefix.count("/") < _DEEPEST:
            bare = key == "metrics" and not prefix
            yield from flattened(value, "" if bare else f"{prefix}{key}/")


def tagged(
    pairs: list[tuple[str, Any]],
) -> list[tuple[str, Any]]:
    """With the value under its name, where a row holds one: {"name": "loss", "value": 2.5}."""
    values = [value for name, value in pairs if name.lower() == "value"]
    tags = [tag for name, tag in pairs if name.lower() in _TAGS and isinstance(tag, str)]
    if len(values) != 1 or len(tags) != 1 or as_number(tags[0]) is not None:
        return pairs
    rest = [(name, value) for name, value in pairs if name.lower() != "value"]
    return [*rest, (tags[0], values[0])]


def position(row: Row) -> float | None:
    """The number that places a row: its step, else its epoch; for the run logger its epoch."""
    names = ("epoch",) if row.get("event") == "epoch" else ("step", "epoch")
    return next((value for name in names if (value := row.get(name)) is not None), None)
