"""What runs logged of a metric, for claims: kept while it is little, else read again when a claim
asks for it."""

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import SupportsIndex, overload

from harness.artifacts.metrics_file import rows_in
from harness.errors import HarnessError

_MOST_KEPT = 200_000
"""Values of all metrics together."""
_MOST_KEYS = 10_000


class LoggedValues(Sequence[float]):
    """The finite values of one metric, in the order of the runs and of their rows."""

    def __init__(self, key: str, paths: Sequence[Path]) -> None:
        self._key, self._paths = key, paths
        self._count, self._last = 0, math.nan
        self._kept: array[float] | None = array("d")

    def add(self, value: float, *, keep: bool) -> None:
        self._count, self._last = self._count + 1, value
        if not keep:
            self._kept = None
        if self._kept is not None:
            self._kept.append(value)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[float]:
        return self._again() if self._kept is None else iter(self._kept)

    @overload
    def __getitem__(self, index: SupportsIndex) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[float]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> float | Sequence[float]:
        if not isinstance(index, slice) and int(index) in (-1, self._count - 1) and self._count:
            return self._last
        return [*self][index]

    def _again(self) -> Iterator[float]:
        for path in self._paths:
            for name, value in _values(path):
                if name == self._key:
                    yield value


def logged_values(paths: Sequence[Path]) -> Mapping[str, LoggedValues]:
    """Metric -> its values in these metrics files. One that cannot be read supports nothing; the
    gate reports it elsewhere."""
    found: dict[str, LoggedValues] = {}
    count = 0
    for path in paths:
        for name, value in _values(path):
            of_name = found.get(name)
            if of_name is None:
                if len(found) >= _MOST_KEYS:
                    continue
                of_name = found[name] = LoggedValues(name, paths)
            count += 1
            of_name.add(value, keep=count <= _MOST_KEPT)
    return found


def _values(path: Path) -> Iterator[tuple[str, float]]:
    try:
        for row in rows_in(path):
            metrics = row.get("metrics")
            for name, value in metrics.items() if isinstance(metrics, dict) else ():
                if type(value) in (int, float) and math.isfinite(value):
                    yield name, float(value)
    except (HarnessError, OSError):
        return
