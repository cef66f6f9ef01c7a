"""What all detectors share: counting rows in a row, and making an alarm from the table of kinds."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Protocol

from harness.detectors.alarm import Alarm, Point, Severity
from harness.detectors.kinds import KINDS
from harness.detectors.rows import Row
from harness.detectors.series import Series

Limits = Mapping[str, float]


class Change(Enum):
    NOTHING = auto()
    WARNING = auto()
    FATAL = auto()
    OVER = auto()


class Episode:
    """Counts rows in a row that look wrong: when to warn, when it is fatal, and when it is over
    again."""

    __slots__ = ("_calm", "_fatal_rows", "_raised", "_rows", "active", "hits")

    def __init__(self, rows: float, fatal_rows: float | None = None) -> None:
        self._rows, self._fatal_rows = rows, None if fatal_rows is None else max(rows, fatal_rows)
        self.hits = 0
        self._calm = 0
        self._raised = 0
        self.active = False
        """Whether a row that looks right changes anything."""

    def step(self, wrong: bool) -> Change:
        if not wrong:
            self.hits = 0
            self._calm += 1
            if self._raised and self._calm >= self._rows:
                self._raised = 0
                self.active = False
                return Change.OVER
            self.active = self._raised > 0
            return Change.NOTHING
        self._calm, self.active = 0, True
        self.hits += 1
        if self._raised < 1 and self.hits >= self._rows:
            self._raised = 1
            return Change.WARNING
        if self._fatal_rows is not None and self._raised < 2 and self.hits >= self._fatal_rows:
            self._raised = 2
            return Change.FATAL
        return Change.NOTHING


class Surroundings(Protocol):
    """What a detector may ask of the run beyond its own metric."""

    @property
    def training_loss(self) -> Series | None: ...

    @property
    def total_epochs(self) -> int | None:
        """What the run planned, in the unit of its rows' `epoch`; any number of rows may be of one
        epoch."""
        ...

    @property
    def by_epoch(self) -> bool:
        """Whether most rows begin an epoch; else they are rows of steps."""
        ...

    @property
    def knows(self) -> bool:
        """Whether an accuracy is well above a guess: a loss that stands still is then no failure to
        learn."""
        ...

    @property
    def rate_rose(self) -> bool:
        """Whether the learning rate rose within the last rows: a warm restart lifts the loss on
        purpose."""
        ...

    @property
    def reinforced(self) -> bool:
        """Whether this is reinforcement learning, whose loss says nothing by its size."""
        ...


class SeriesDetector(Protocol):
    """Sees each finite value of one metric, before it is added to the metric's series. O(1)."""

    def feed(
        self, series: Series, row: Row, value: float, around: Surroundings
    ) -> Alarm | None: ...


SEVERITIES = {
    Change.WARNING: Severity.WARNING,
    Change.FATAL: Severity.FATAL,
    Change.OVER: Severity.NOTE,
}


def make(
    code: str,
    change: Change,
    row: Row,
    *,
    metric: str,
    message: str,
    evidence: tuple[Point, ...],
    threshold: str,
    limits: Limits,
) -> Alarm:
    """An alarm of the table; `threshold` is the name within the kind."""
    name = f"{code}.{threshold}"
    over = change is Change.OVER
    return Alarm(
        code=code,
        severity=SEVERITIES[change],
        metric=metric,
        row=row.number,
        place=row.place,
        message=f"{metric}: over: {message}" if over else f"{metric}: {message}",
        evidence=evidence,
        threshold=name,
        limit=limits[name],
        tries=() if over else KINDS[code].tries,
        recovered=over,
    )
