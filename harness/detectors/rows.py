"""One row as detectors see it, whichever logger wrote it."""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from harness.domain.plain_text import plain_name

_COUNTERS = frozenset({"epoch", "step", "global_step", "iteration", "iter", "_step"})
_NAMES = frozenset({"t", "event", "run", "token", "status", "path", "error", "note"})
_NAMES |= {"config", "seed", "attempt", "final"}
_KNOWN = _COUNTERS | _NAMES | {"metrics", "learning_rate"}


class WatchedRow(NamedTuple):
    """One row as detectors see it, whichever logger wrote it."""

    number: int
    """Position in the stream, from 1."""
    event: str
    """start, epoch, checkpoint, attempt or end; "epoch" for rows of other loggers."""
    epoch: float | None
    step: float | None
    metrics: dict[str, float]
    """Name -> value; NaN and infinities are floats."""
    learning_rate: float | None
    seconds: float | None
    """Unix time, in seconds."""
    episodic: bool = False
    """Whether it is an episode, which lasts as long as the policy makes it."""

    @property
    def place(self) -> float | None:
        return self.epoch if self.epoch is not None else self.step


def row_from(plain: Mapping[str, Any], number: int) -> WatchedRow:
    """A row as readers of metrics files return it: numbers under `metrics`, or flat beside the
    counters."""
    event = plain.get("event")
    inner = plain.get("metrics")
    # `type(...) is`, here and below: a bool is an int for isinstance, and no measured value.
    metrics: dict[str, float] = {}
    if type(inner) is dict:
        for key, value in inner.items():
            if type(value) is float or type(value) is int:
                metrics[plain_name(key)] = value
    for key in plain:
        if key not in _KNOWN:
            value = plain[key]
            if type(value) is float or type(value) is int:
                metrics[plain_name(key)] = value
    step = plain.get("step")
    if step is None:
        step = plain.get("global_step", plain.get("iteration", plain.get("_step")))
    rate = plain.get("learning_rate")
    if type(rate) is not float and type(rate) is not int:
        rate = metrics.pop("learning_rate", None)
    return WatchedRow(
        number,
        event if type(event) is str else "epoch",
        _number(plain.get("epoch")),
        _number(step),
        metrics,
        # Two spellings; a learning rate under `metrics` is taken out of them above.
        rate if rate is not None else _number(plain.get("lr")),
        _seconds(plain.get("t")),
        plain.get("unit") == "episode",
    )


def _number(value: Any) -> float | None:
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return value
    return None


def _seconds(value: Any) -> float | None:
    if type(value) is not str:
        return _number(value)
    try:
        return datetime.fromisoformat(value).timestamp()
    except ValueError:
        return None
