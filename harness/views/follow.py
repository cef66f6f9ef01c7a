"""What a watcher follows: the runs of an experiment, or logs that others write. Both give run
pictures to draw."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from harness.clock import Clock
from harness.detectors.alarm import Alarm, Severity
from harness.views.run_picture import RunPicture

MOST_NEWS = 1000
MOST_RUNS = 24
"""Drawn side by side or one below the other; of more the newest."""


@dataclass(kw_only=True)
class RunView:
    """A picture with what is known of its run besides its rows."""

    picture: RunPicture
    status: str
    """As in the ledger, or lost. Of other logs: waiting, reading, running, quiet, stopped, lost,
    completed, failed, ended (another run follows in the file), ledger."""
    seed: int | None = None
    age_s: float | None = None
    """Seconds since it said anything."""
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    behind: float | None = None
    """The share of the file that is still to be read; None when all is."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A tier of the plan, about the metrics that a picture calls its goal."""

    value: float
    name: str


@dataclass(frozen=True, kw_only=True)
class News:
    """One thing that happened in a run: a row, an alarm, or rows and notes of which only the number
    is left."""

    run: str
    seed: int | None = None
    row: Mapping[str, Any] | None = None
    """As readers give it: names and texts in it are whatever the training wrote."""
    began: float | None = None
    """When the run's first row was written, Unix seconds."""
    alarm: Alarm | None = None
    left_out: int = 0
    """Rows."""
    notes_left_out: int = 0
    """Alarms that are notes."""


def trimmed(news: list[News]) -> list[News]:
    """`news`, or when it is long the newest of it, the warnings before, and the number of rows and
    notes of each run that were left out: what a look holds in memory does not grow with the log."""
    if len(news) <= 2 * MOST_NEWS:
        return news
    before = news[:-MOST_NEWS]
    warnings = [
        item
        for item in before
        if item.alarm is not None and item.alarm.severity is not Severity.NOTE
    ]
    return [*counted(before), *warnings[-MOST_NEWS // 2 :], *news[-MOST_NEWS:]]


def counted(news: Iterable[News]) -> list[News]:
    """One of each run, with how many rows and notes there are."""
    runs: dict[tuple[str, int | None], News] = {}
    for item in news:
        key = item.run, item.seed
        known = runs.get(key, News(run=item.run, seed=item.seed))
        note = item.alarm is not None and item.alarm.severity is Severity.NOTE
        runs[key] = replace(
            known,
            left_out=known.left_out + item.left_out + (item.row is not None),
            notes_left_out=known.notes_left_out + item.notes_left_out + note,
        )
    return list(runs.values())


class Follower(Protocol):
    @property
    def title(self) -> str: ...

    @property
    def waits_for(self) -> str:
        """The path at which the first row is awaited."""
        ...

    @property
    def targets(self) -> Sequence[Target]: ...

    def poll(self, *, seconds: float) -> list[News]:
        """Read what is new, for about `seconds` at most; what is left then comes with the next
        call."""
        ...

    def finish(self) -> list[News]:
        """What is left when nothing more will come."""
        ...

    def views(self) -> list[RunView]: ...

    def over(self) -> bool:
        """Whether nothing more will come."""
        ...

    def succeeded(self) -> bool: ...

    def document(self) -> dict[str, Any]: ...


class Heart:
    """How long ago a file changed. After the first look only a clock that never goes back is
    asked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.beats = 0
        """How many changes were seen, the first look included."""
        self._seen: tuple[float, int] | None = None
        self._age, self._since = 0.0, clock.monotonic()

    def beat(self, modified: float | None, size: int) -> None:
        if modified is None or self._seen == (modified, size):
            return
        first, self._seen = self._seen is None, (modified, size)
        self.beats += 1
        self._age = max(0.0, self._clock.now().timestamp() - modified) if first else 0.0
        self._since = self._clock.monotonic()

    @property
    def age_s(self) -> float | None:
        return None if self._seen is None else self._age + self._clock.monotonic() - self._since
