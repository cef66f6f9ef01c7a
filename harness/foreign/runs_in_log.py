"""Which run a row of a log belongs to: there may be several runs, copies of rows, and resumes."""

from typing import Any

from harness.foreign.log_rows import Row, position

_REMEMBERED = 1000


class RunsInLog:
    """Marks each row with its `run`, and adds rows `start` and `attempt` where a run starts or
    resumes.

    Counters that go back, of all values of a row, are a resume; to the first row or before it, they
    are another run. A row that repeats an earlier one value for value is a copy and is left out.
    Rows of the run logger name their run themselves. Memory is bounded.
    """

    def __init__(self) -> None:
        self.count = 0
        self.copies = 0
        self._restart()

    def _restart(self) -> None:
        self.count += 1
        self._at: dict[str, float] = {}
        """Metric -> the place of its last row."""
        self._first: float | None = None
        self._early: dict[float, list[int]] = {}
        """Place -> hashes of its rows, for the first rows only."""
        self._copying = False
        self._last: tuple[float, dict[str, Any]] | None = None
        self._early_full = False
        self._label = f"run {self.count}"

    def feed(self, row: Row) -> list[Row]:
        """`row`, after the start or attempt that it begins."""
        if isinstance(row.get("run"), str):
            return [row]
        if row.get("event") == "start" and self._at:
            self._restart()
        place, metrics = position(row), row.get("metrics")
        row["run"] = self._label
        if place is None or not metrics:
            return [row]
        at = self._at
        # The usual case: the run goes on.
        if self._early_full and all(at.get(key, place) < place for key in metrics):
            self._last = place, metrics
            for key in metrics:
                at[key] = place
            return [row]
        if self._is_copy(place, metrics):
            self.copies += 1
            return []
        before = self._went_back(place, metrics)
        self._note(place, metrics)
        row["run"] = self._label
        return [*before, row]

    def _is_copy(self, place: float, metrics: dict[str, Any]) -> bool:
        if (
            self._last is not None
            and self._last[0] == place
            and _digest(self._last[1]) == _digest(metrics)
        ):
            return True  # two handlers logged the same row
        highest = max((self._at.get(key, place) for key in metrics), default=place)
        if place >= highest:
            self._copying = False
            return False
        # Whether rows repeat is decided where they are remembered, and holds until they go on: a
        # file that was appended to itself is then left out whole, in bounded memory.
        known = self._early.get(place)
        if known is not None:
            self._copying = _digest(metrics) in known
        return self._copying

    def _went_back(self, place: float, metrics: dict[str, Any]) -> list[Row]:
        # All values, not any: train and eval rows are logged at places of their own.
        if not all(key in self._at and place < self._at[key] for key in metrics):
            return []
        if self._first is None or place <= self._first:
            self._restart()
            return [{"event": "start", "run": self._label}]
        self._at = {key: min(at, place) for key, at in self._at.items()}
        return [{"event": "attempt", "resumed_at": place, "run": self._label}]

    def _note(self, place: float, metrics: dict[str, Any]) -> None:
        self._first = place if self._first is None else min(self._first, place)
        self._last = place, metrics
        for key in metrics:
            self._at[key] = place
        if len(self._early) < _REMEMBERED or place in self._early:
            self._early.setdefault(place, []).append(_digest(metrics))
        self._early_full = len(self._early) >= _REMEMBERED


def _digest(metrics: dict[str, Any]) -> int:
    """Equal for equal values, NaN included."""
    return hash(tuple(sorted((key, repr(value)) for key, value in metrics.items())))
