"""What the callbacks put into a row: logged values that are numbers, steps a second, GPU memory."""

import sys
from collections.abc import Mapping
from typing import Any

from harness.clock import (
    Clock,
    SystemClock,
)

_MEBIBYTE = 1 << 20


def numbers(logs: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that a row can hold: numbers and one-element tensors, NaN and infinities too."""
    return {str(key): value for key, value in logs.items() if _is_number(value)}


def _is_number(value: Any) -> bool:
    if isinstance(value, bool | str | bytes):
        return False
    elements = getattr(value, "numel", None) or getattr(value, "size", None)
    count = elements() if callable(elements) else elements
    return count == 1 if count is not None else hasattr(value, "__float__")


def gpu_memory_mb() -> float | None:
    """Peak memory of tensors on the current GPU since the last call, in MiB; None without torch or
    GPU."""
    # A library that uses a GPU has imported torch; nothing is loaded just to ask.
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    peak = torch.cuda.max_memory_allocated() / _MEBIBYTE
    torch.cuda.reset_peak_memory_stats()
    return float(peak)


class Pace:
    """Steps a second between two rows; call `restart` after evaluating or saving to exclude it."""

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
    values = {"steps_per_second": pace.steps_per_second(steps), "gpu_memory_mb": gpu_memory_mb()}
    return {name: value for name, value in values.items() if value is not None}
