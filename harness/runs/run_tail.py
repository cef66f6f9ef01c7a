"""A run's rows while it goes on: which count, when they came, the alarms that they raise, and what
`harness train` tells of them.

Rows made up later do not pass for logged ones: the run logger reads the clock and writes the row
at once, so a row is there at every look after its time. The times of looks are the supervisor's:
nothing here trusts the training.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.artifacts.metrics_file import Row, Tail, belonging, place
from harness.artifacts.metrics_notes import SLACK_S, time_of
from harness.artifacts.resume_check import ResumeCheck
from harness.clock import Clock, iso
from harness.detectors.alarm import Alarm
from harness.detectors.behind import CODE as BEHIND
from harness.detectors.watch import RunWatch
from harness.detectors.watch_settings import WatchSettings
from harness.domain.findings import CLOCK_SET, STOPPED, Finding
from harness.domain.records import Run
from harness.domain.training_status import last_epoch
from harness.files import atomic_write
from harness.ledger.facts import AlarmRaised
from harness.ledger.project import Project
from harness.plans.parse import plan_from
from harness.runs.behind_parent import beside_parent, record_behind, stopped_behind
from harness.runs.checkpoint_watch import Tellings

_CLOCK_S = 1.0
"""How far wall clock and monotonic clock may drift apart before row times prove nothing."""
_LEAST = 2
"""One late row is a disk that stalled between clock and write; the next row reads the clock only
after that write."""
MOST_ALARMS = 100
"""Recorded of one run."""
_MOST_METRICS = 4
_EVENT_SECONDS = 1.0

Event = Callable[[dict[str, Any]], None]


class RunRows:
    """Takes the rows of the run's own run logger, known by name and link token, and keeps what
    decides about the run."""

    def __init__(self, path: Path, *, run: str, token_sha256: str) -> None:
        self.path, self.run, self._token = path, run, token_sha256
        self._start: Row | None = None
        self.count = 0
        self.foreign = 0
        """Rows that are not of this run."""
        self.total_epochs: int | None = None
        self.end: Row | None = None
        self.logged: dict[str, Any] = {}
        """The configuration that training said it had."""
        self.checkpoints = Tellings()
        self.resumes = ResumeCheck()

    @property
    def seen(self) -> bool:
        """Whether the run logger was used at all."""
        return self.count > 0

    def take(self, rows: Iterable[Row]) -> list[Row]:
        """Of `rows`, which follow those taken before, the ones that count."""
        new = list(rows)
        before = [] if self._start is None else [self._start]
        every = belonging([*before, *new], run=self.run, token_sha256=self._token)
        own = [*every][len(before) :]
        self.count += len(own)
        self.foreign += len(new) - len(own)
        for row in own:
            self._note(row)
        return own

    def _note(self, row: Row) -> None:
        self.resumes.take(row)
        event = row.get("event")
        if event in ("start", "attempt"):
            self._start, self.end = self._start or row, None
            said = row.get("config")
            self.logged = said if isinstance(said, dict) else {}
            total = row.get("total_epochs")
            self.total_epochs = total if type(total) is int else self.total_epochs
        elif event == "checkpoint":
            self.checkpoints.take(row)
        elif event == "end":
            self.end = row


class RunTail:
    """Looks at a run's rows again and again. Made before the run is launched.

    `registered`: when the ledger says that it was; never before its newest fact, so later than now
    where the clock was ahead once.
    """

    def __init__(self, rows: RunRows, clock: Clock, registered: datetime) -> None:
        self.rows, self._clock = rows, clock
        self._tail = Tail(rows.path)
        self._begun, self._monotonic = clock.now(), clock.monotonic()
        self._ahead = (registered - self._begun).total_seconds()
        self._before = self._begun
        self._drift = 0.0
        self._late = self._early = 0
        self._example = ""

    def before(self) -> Iterator[list[Row]]:
        """The rows of earlier attempts, whose times were checked then, some at a time. Called
        before the launch."""
        return map(self.rows.take, self._tail.batches())

    def look(self) -> Iterator[list[Row]]:
        """The run's own rows that came since the last look, some at a time, if any."""
        now = self._clock.now()
        passed = self._clock.monotonic() - self._monotonic
        self._drift = max(self._drift, abs((now - self._begun).total_seconds() - passed))
        for batch in self._tail.batches():
            new = self.rows.take(batch)
            self._check_times(new, now)
            yield new
        self._before = now

    def _check_times(self, rows: Iterable[Row], now: datetime) -> None:
        for row in rows:
            at = time_of(row)
            if at is None:
                continue
            if (self._before - at).total_seconds() > SLACK_S:
                self._late += 1
                self._example = (
                    self._example or f"{row['t']}, which was not there at {iso(self._before)}"
                )
            elif (at - now).total_seconds() > SLACK_S:
                self._early += 1
                self._example = self._example or f"{row['t']}, which was there at {iso(now)}"

    def findings(self) -> list[Finding]:
        """Of all looks, the last one taken after the run's processes had ended."""
        name, data = self.rows.run, {"run": self.rows.run}
        findings = []
        if not self._tail.intact():
            findings.append(
                Finding(
                    "metrics_rewritten",
                    f"Rows that {name} had logged are not in its metrics.jsonl any more, or not as"
                    " they were.",
                    "Train again: rows are appended by the run logger and never edited, also not by"
                    " the training code.",
                    data,
                )
            )
        if self._drift > _CLOCK_S:
            message = (
                f"The clock jumped by {self._drift:.0f} s while {name} trained: the times of its"
                " rows say nothing."
            )
            return [*findings, Finding(CLOCK_SET, message, "Nothing to do.", data)]
        wrong = self._early + (self._late if self._late >= _LEAST else 0)
        if wrong and not findings:
            findings.append(
                Finding(
                    "metrics_out_of_time",
                    f"{wrong} rows of {name} do not say when they were written, e.g. one of"
                    f" {self._example}.",
                    "Train again, and call the run logger while it trains: rows cannot be written"
                    " later.",
                    data,
                )
            )
        elif self._ahead > SLACK_S:
            message = (
                f"The ledger's newest fact was {self._ahead:.0f} s later than the clock when {name}"
                " began: the clock was set back, and the times of its rows are not compared with"
                " the ledger's."
            )
            findings.append(Finding(CLOCK_SET, message, "Nothing to do.", data))
        return findings


class RunAlarms:
    """Feeds a run's own rows, in order, to the detectors."""

    # After a supervisor's death all rows are read again: only alarms that the ledger does not hold
    # yet are recorded.

    def __init__(self, project: Project, run: Run) -> None:
        self._project, self._run = project, run
        self._watch = RunWatch(watch_settings(project, run.experiment))
        self._recorded = [
            Alarm.from_plain(fact.alarm) for fact in project.ledger.alarms(run.experiment, run.id)
        ]
        self._known = {_identity(alarm) for alarm in self._recorded}
        self._before = frozenset(self._known)

    def take(self, rows: Iterable[Row]) -> list[Alarm]:
        """Record the new alarms of `rows`, and return them."""
        new = [
            alarm
            for row in rows
            for alarm in self._watch.feed(row)
            if _identity(alarm) not in self._known
        ]
        return self.add(new)

    def add(self, new: list[Alarm]) -> list[Alarm]:
        """Record alarms that no row raised, too; those that were."""
        new = new[: max(0, MOST_ALARMS - len(self._recorded))]
        for alarm in new:
            self._known.add(_identity(alarm))
            self._recorded.append(Alarm.from_plain(alarm.plain()))  # as the ledger gives it back
            self._project.ledger.append(
                AlarmRaised(experiment=self._run.experiment, run=self._run.id, alarm=alarm.plain())
            )
            if alarm.code == BEHIND:
                record_behind(self._project, self._run, alarm)
        if new:
            self._write()
        return new

    def fatal(self) -> Alarm | None:
        """The alarm that ends the run by the plan's alarms.stop_on. One that ended the run before
        it was resumed does not end it again."""
        # Only where the plan stops on it is a run compared with its parent.
        behind = [one for one in self._recorded if one.code == BEHIND]
        alarm = self._watch.fatal() or next(iter(behind), None)
        return alarm if alarm is not None and _identity(alarm) not in self._before else None

    def restore(self) -> None:
        """alarms.jsonl as the ledger has it, where a kill came between the two."""
        if self._recorded:
            self._write()

    def _write(self) -> None:
        """One alarm a line, oldest first; always whole."""
        path = self._project.layout.run(self._run.experiment, self._run.id, "alarms")
        lines = [
            json.dumps(alarm.plain(), ensure_ascii=False, allow_nan=False)
            for alarm in self._recorded
        ]
        atomic_write(path, "\n".join(lines) + "\n", durable=False)


def stopped(run: Run, alarm: Alarm) -> Finding:
    """Why the harness ended the run."""
    if alarm.code == BEHIND:
        return stopped_behind(run, alarm)
    name = f"{run.experiment}/{run.id}"
    return Finding(
        STOPPED,
        f"{name} was stopped by the alarm {alarm.code} at row {alarm.row}: {alarm.message}.",
        "Read its diagnosis, change what it names, then train again. What stops a run:"
        " `alarms.stop_on` in the plan.",
        {"run": name, "alarm": alarm.code, "row": alarm.row},
    )


def watch_settings(project: Project, experiment: str) -> WatchSettings:
    """The plan's; the defaults for a training program, which is not of the plan."""
    plan = project.ledger.plan()
    if plan is None or project.ledger.program(experiment) is not None:
        return WatchSettings()
    settings = plan_from(plan.content).watch_settings()
    return beside_parent(project, experiment, settings) if BEHIND in settings.stop_on else settings


def _identity(alarm: Alarm) -> tuple[str, str, int, str, bool]:
    return alarm.code, alarm.metric, alarm.row, alarm.severity.value, alarm.recovered


def alarm_event(run: str, alarm: Alarm) -> dict[str, Any]:
    text = f"{run}  {alarm.severity} {alarm.code} at row {alarm.row}: {alarm.message}"
    return {"kind": "alarm", "run": run, "alarm": alarm.plain(), "text": text}


def epoch_event(run: str, row: Mapping[str, Any], total: int | None) -> dict[str, Any]:
    epoch, metrics = place(dict(row)), row.get("metrics")
    shown = metrics if isinstance(metrics, dict) else {}
    numbers = "  ".join(
        f"{key} {value:.4g}"
        for key, value in list(shown.items())[:_MOST_METRICS]
        if isinstance(value, float | int)
    )
    last = last_epoch(epoch, total)
    of = "" if last is None else f"/{last}"
    text = f"{run}  epoch {epoch}{of}  {numbers}"
    return {"kind": "epoch", "run": run, "epoch": epoch, "metrics": shown, "text": text}


class Progress:
    """The newest epoch, at most once a second, and the last one in any case."""

    def __init__(self, on_event: Event, rows: RunRows) -> None:
        self._on_event, self._rows = on_event, rows
        self._latest: Row | None = None
        self._shown_at = -_EVENT_SECONDS

    def show(self, elapsed: float) -> None:
        if elapsed - self._shown_at >= _EVENT_SECONDS and self._tell():
            self._shown_at = elapsed

    def end(self) -> None:
        self._tell()

    def note(self, new: list[Row]) -> None:
        epochs = [row for row in new if row.get("event") == "epoch"]
        self._latest = epochs[-1] if epochs else self._latest

    def _tell(self) -> bool:
        if self._latest is None:
            return False
        self._on_event(epoch_event(self._rows.run, self._latest, self._rows.total_epochs))
        self._latest = None
        return True
