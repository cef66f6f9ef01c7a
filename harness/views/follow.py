"""What a watcher follows: the runs of an experiment, or the logs of other programs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from harness.clock import Clock
from harness.detectors.alarm import Alarm, Severity
from harness.views.run_picture import RunPicture

MOST_NEWS = 1000
MOST_RUNS = 24
"""The newest runs are drawn, side by side or one below the other."""


@dataclass(kw_only=True)
class RunView:
    """A run picture with what is known about its run besides the rows."""

    picture: RunPicture
    status: str
    """A status of the ledger, or lost. Of a foreign log: waiting, reading, running, quiet, stopped,
    lost, completed, failed, ended (another run follows in the file), ledger."""
    seed: int | None = None
    age_s: float | None = None
    """Seconds since its file last changed."""
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    trouble: str = ""
    """Why its file cannot be read now."""
    behind: float | None = None
    """The share of the file that is still unread; None when all is read."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A tier of the plan, for the goal metric of a run picture."""

    value: float
    name: str


@dataclass(frozen=True, kw_only=True)
class News:
    """An event of a run: a row, an alarm, or the number of rows and notes that were left out."""

    run: str
    seed: int | None = None
    row: Mapping[str, Any] | None = None
    """As the reader gives it: the training code chose its names and texts."""
    began: float | None = None
    """Time of the run's first row, Unix seconds."""
    alarm: Alarm | None = None
    left_out: int = 0
    """Number of rows."""
    notes_left_out: int = 0
    """Number of alarms with severity note."""


def trimmed(news: list[News]) -> list[News]:
    """`news` in bounded memory, however long the log is.

    Keeps the newest entries and earlier warnings; counts the other rows and notes of each run.
    """
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
    """One entry per run: its number of rows and notes."""
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
        """The path where the first row is expected."""
        ...

    @property
    def targets(self) -> Sequence[Target]: ...

    def poll(self, *, seconds: float) -> list[News]:
        """Read new rows for about `seconds` at most; the next call continues."""
        ...

    def finish(self) -> list[News]:
        """The rest, once nothing more will come."""
        ...

    def views(self) -> list[RunView]: ...

    def over(self) -> bool:
        """Whether nothing more will come."""
        ...

    def succeeded(self) -> bool: ...

    def document(self) -> dict[str, Any]: ...


class Heart:
    """The age of a file's last change."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.beats = 0
        """Number of changes seen, the first call included."""
        self._seen: tuple[float, int] | None = None
        self._age, self._since = 0.0, clock.monotonic()

    def beat(self, modified: float | None, size: int) -> None:
        if modified is None or self._seen == (modified, size):
            return
        # Only the first change is dated by the wall clock, which may be moved; later ones are seen
        # as they happen and are measured by the monotonic clock.
        first, self._seen = self._seen is None, (modified, size)
        self.beats += 1
        self._age = max(0.0, self._clock.now().timestamp() - modified) if first else 0.0
        self._since = self._clock.monotonic()

    @property
    def age_s(self) -> float | None:
        return None if self._seen is None else self._age + self._clock.monotonic() - self._since
