"""What the callbacks share: which logged values are numbers, how fast steps pass, how much GPU
memory was taken, which way the plan's metric is better."""

import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from harness.clock import Clock, SystemClock
from harness.domain import variables
from harness.domain.statuses import Direction

_MEBIBYTE = 1 << 20
_SPLIT = re.compile(r"^(?:val|valid|validation|eval|dev|test)[_/]")


def numbers(logs: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that one row can hold: numbers and tensors of one element; NaN and infinities
    stay."""
    return {str(key): value for key, value in logs.items() if _is_number(value)}


def _is_number(value: Any) -> bool:
    if isinstance(value, bool | str | bytes):
        return False
    elements = getattr(value, "numel", None) or getattr(value, "size", None)
    count = elements() if callable(elements) else elements
    return count == 1 if count is not None else hasattr(value, "__float__")


def planned_direction(metric: str) -> Direction | None:
    """The plan's, when `metric` is its metric, with or without the name of a split before it; else
    None."""
    planned, direction = os.environ.get(variables.METRIC), os.environ.get(variables.DIRECTION)
    mine = planned in (metric, _SPLIT.sub("", metric))
    return Direction(direction) if mine and direction else None


def gpu_memory_mb() -> float | None:
    """The most memory that tensors held on the current GPU since the last call, in MiB; None
    without torch or GPU."""
    torch = sys.modules.get(
        "torch"
    )  # a library that uses a GPU has imported it; nothing is loaded for this
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    taken = torch.cuda.max_memory_allocated() / _MEBIBYTE
    torch.cuda.reset_peak_memory_stats()
    return float(taken)


class Pace:
    """Steps a second between two rows; what evaluation and saving take is left out by `restart`."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self._steps, self._since = 0, self._clock.monotonic()

    def restart(self, steps: int) -> None:
        self._steps, self._since = steps, self._clock.monotonic()

    def steps_per_second(self, steps: int) -> float | None:
        """Since the last call or restart; None when no step or no time has passed."""
        passed, done = self._clock.monotonic() - self._since, steps - self._steps
        self.restart(steps)
        return done / passed if done > 0 and passed > 0 else None


def measured(pace: Pace, steps: int) -> dict[str, float]:
    """`steps_per_second` and `gpu_memory_mb`, each where it is known."""
    found = {"steps_per_second": pace.steps_per_second(steps), "gpu_memory_mb": gpu_memory_mb()}
    return {name: value for name, value in found.items() if value is not None}
