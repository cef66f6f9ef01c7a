"""What runs use of their machine: the lines of resources.jsonl, peak and mean of each figure."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

FIGURES = (
    "cpu",
    "memory_bytes",
    "disk_bytes",
    "gpu",
    "gpu_memory_bytes",
)
"""cpu counts cores, gpu whole devices: 1.5 is one and a half."""
_UNITS = ("B", "kB", "MB", "GB", "TB")
_STEP = 1000.0
_NAMES = {
    "cpu": "CPU",
    "memory_bytes": "memory",
    "disk_bytes": "disk",
    "gpu": "GPU",
    "gpu_memory_bytes": "GPU memory",
}

Summary = dict[str, dict[str, float]]
"""Figure -> its peak and its mean over time."""


class Usage:
    """Peak and mean of each figure, in the order of the lines; each counts for the time since the
    line before it."""

    def __init__(self) -> None:
        self._peaks: dict[str, float] = {}
        self._sums: dict[str, float] = {}
        self._seconds: dict[str, float] = {}
        self._at = 0.0

    def add(self, line: Mapping[str, Any]) -> None:
        """What is no number counts for nothing."""
        at = _number(line.get("seconds"))
        if at is None:
            return
        # A resumed run begins again at 0.
        passed = at - self._at if at > self._at else at
        self._at = at
        for name in FIGURES:
            value = _number(line.get(name))
            if value is None:
                continue
            peak = self._peaks.get(name, value)
            self._peaks[name] = max(peak, value)
            total = self._sums.get(name, 0.0)
            self._sums[name] = total + value * passed
            before = self._seconds.get(name, 0.0)
            self._seconds[name] = before + passed

    def summary(self) -> Summary:
        return {
            name: {
                "peak": _rounded(name, peak),
                "mean": _rounded(name, self._mean(name)),
            }
            for name, peak in self._peaks.items()
        }

    def _mean(self, name: str) -> float:
        seconds = self._seconds[name]
        if seconds <= 0:
            return self._peaks[name]
        return self._sums[name] / seconds


def merged(runs: Iterable[tuple[Summary, float | None]]) -> Summary:
    """Of several runs, each with its seconds: the highest peak, and the mean over their time."""
    whole: Summary = {}
    known = [(told, seconds or 1.0) for told, seconds in runs]
    for name in FIGURES:
        parts = [(told[name], seconds) for told, seconds in known if name in told]
        if not parts:
            continue
        time = sum(seconds for _, seconds in parts)
        total = sum(one["mean"] * many for one, many in parts)
        whole[name] = {
            "peak": max(one["peak"] for one, _ in parts),
            "mean": _rounded(name, total / time),
        }
    return whole


def in_words(summary: Summary) -> list[str]:
    """E.g. "CPU 1.9 cores, mean 1.2"; one text a figure."""
    texts = []
    for name in FIGURES:
        told = summary.get(name)
        if told is None:
            continue
        peak = figure(name, told["peak"])
        peak += " cores" if name == "cpu" else ""
        mean = figure(name, told["mean"])
        texts.append(f"{_NAMES[name]} {peak}, mean {mean}")
    return texts


def figure(name: str, value: float) -> str:
    if name.endswith("bytes"):
        return size(value)
    if name == "gpu":
        return f"{value:.0%}"
    return f"{value:.1f}"


def size(count: float) -> str:
    """E.g. "980 B", "12.4 MB"."""
    for unit in _UNITS:
        if count < _STEP or unit == _UNITS[-1]:
            break
        count /= _STEP
    digits = 0 if unit == "B" or count >= 100 else 1
    return f"{count:.{digits}f} {unit}"


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if not isinstance(value, int | float):
        return None
    number = float(value)
    if not math.isfinite(number):
        return None
    return number if number >= 0 else None


def _rounded(name: str, value: float) -> float:
    if name.endswith("bytes"):
        return float(round(value))
    return round(value, 2)
