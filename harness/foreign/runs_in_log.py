"""Which run a row of a log belongs to: there may be several runs, copies of rows, and resumes."""

from typing import Any

from harness.foreign.log_rows import Row, position

_REMEMBERED = 1000
_TOTALS = ("total_steps", "total_epochs")


class _Axis:
    """What is known of the rows that one kind of counter places: steps, or epochs."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        """Metric -> the place of its last row."""
        self.first: float | None = None
        self.early: dict[float, list[int]] = {}
        """Place -> hashes of its rows, for the first rows only."""
        self.early_full = False
        self.copying = False
        self.last: tuple[float, int | None, dict[str, Any]] | None = None

    def note(
        self,
        place: float,
        batch: int | None,
        metrics: dict[str, Any],
    ) -> None:
        self.first = place if self.first is None else min(self.first, place)
        self.last = place, batch, metrics
        for key in metrics:
            self.at[key] = place
        if len(self.early) < _REMEMBERED or place in self.early:
            self.early.setdefault(place, []).append(_digest(batch, metrics))
        self.early_full = len(self.early) >= _REMEMBERED

    def is_copy(
        self,
        place: float,
        batch: int | None,
        metrics: dict[str, Any],
    ) -> bool:
        last = self.last
        digest = _digest(batch, metrics)
        if last is not None and last[0] == place and _digest(last[1], last[2]) == digest:
            return True  # two handlers logged the same row
        highest = max((self.at.get(key, place) for key in metrics), default=place)
        if place >= highest:
            self.copying = False
            return False
        # Whether rows repeat is decided where they are remembered, and holds until they go on: a
        # file that was appended to itself is then left out whole, in bounded memory.
        known = self.early.get(place)
        if known is not None:
            self.copying = digest in known
        return self.copying


class RunsInLog:
    """Marks each row with its `run`, and adds rows `start` and `attempt` where a run starts or
    resumes, `total` where a row says how many steps or epochs are planned, and `axis` where steps
    turn out to count within epochs.

    Counters that go back, of all values of a row, are a resume; to the first row or before it, they
    are another run. A step that goes back where a new epoch begins counts within epochs: the epoch
    places the rows then. A row that repeats an earlier one value for value is a copy and is left
    out. Rows of the run logger name their run themselves. Memory is bounded.
    """

    def __init__(self) -> None:
        self.count = 0
        self.copies = 0
        self._restart()

    def _restart(self) -> None:
        self.count += 1
        self._axes = {"step": _Axis(), "epoch": _Axis()}
        self._newest: tuple[float, float] | None = None
        """Epoch and step of the newest row that has both."""
        self._within = False
        """Whether steps count within epochs."""
        self._totals: dict[str, Any] = {}
        self._label = f"run {self.count}"

    def feed(self, row: Row) -> list[Row]:
        """`row`, after the start or attempt that it begins."""
        if isinstance(row.get("run"), str):
            return [row]
        event = row.get("event")
        begun = any(axis.at for axis in self._axes.values())
        if event == "start" and begun:
            self._restart()
        total = [] if event is not None else self._total(row)
        within = self._within
        batch = self._batch(row)
        if self._within and not within:
            total.append({"event": "axis", "run": self._label, **self._totals})
        place, metrics = position(row), row.get("metrics")
        row["run"] = self._label
        if place is None or not metrics or event is not None:
            return [*total, row]
        axis = self._axes["step" if "step" in row else "epoch"]
        at = axis.at
        # The usual case: the run goes on.
        if axis.early_full and all(at.get(key, place) < place for key in metrics):
            axis.last = place, batch, metrics
            for key in metrics:
                at[key] = place
            return [*total, row]
        if axis.is_copy(place, batch, metrics):
            self.copies += 1
            return total
        before = self._went_back(axis, place, metrics)
        kind = "step" if "step" in row else "epoch"
        self._axes[kind].note(place, batch, metrics)
        for each in (*total, row):
            each["run"] = self._label
        return [*before, *total, row]

    def _total(self, row: Row) -> list[Row]:
        """A row of the totals that `row` says anew."""
        said = {key: row.pop(key) for key in _TOTALS if key in row}
        new = {key: many for key, many in said.items() if self._totals.get(key) != many}
        if not new:
            return []
        self._totals |= new
        return [{"event": "total", "run": self._label, **self._totals}]

    def _batch(self, row: Row) -> int | None:
        """The counter within the epoch, which places no row."""
        epoch, step = row.get("epoch"), row.get("step")
        if epoch is None or step is None:
            inner: int | None = row.pop("batch", None)
            return inner
        newest, self._newest = self._newest, (epoch, step)
        if newest is not None and epoch >= newest[0] + 1 and step <= newest[1]:
            self._within = True
        within: int | None = row.pop(
            "step" if self._within else "batch",
            None,
        )
        return within

    def _went_back(
        self,
        axis: _Axis,
        place: float,
        metrics: dict[str, Any],
    ) -> list[Row]:
        # All values, not any: train and eval rows are logged at places of their own.
        at = axis.at
        if not all(key in at and place < at[key] for key in metrics):
            return []
        if axis.first is None or place <= axis.first:
            self._restart()
            return [{"event": "start", "run": self._label}]
        axis.at = {key: min(past, place) for key, past in at.items()}
        return [{"event": "attempt", "resumed_at": place, "run": self._label}]


def _digest(
    batch: int | None,
    metrics: dict[str, Any],
) -> int:
    """Equal for equal values, NaN included."""
    return hash((batch, tuple(sorted((key, repr(value)) for key, value in metrics.items()))))
