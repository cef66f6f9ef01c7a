"""The watch over one run: each alarm of the detectors becomes one fact and one line of
alarms.jsonl, however often the rows are read."""

import json
from collections.abc import Iterable

from harness.artifacts.metrics_file import Row
from harness.detectors.alarm import Alarm
from harness.detectors.watch import RunWatch
from harness.detectors.watch_settings import WatchSettings
from harness.domain.findings import STOPPED, Finding
from harness.domain.records import Run
from harness.files import atomic_write
from harness.ledger.facts import AlarmRaised
from harness.ledger.project import Project
from harness.plans.parse import plan_from

MOST_ALARMS = 100
"""Recorded of one run."""


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
        if new:
            self._write()
        return new

    def fatal(self) -> Alarm | None:
        """The alarm that ends the run by the plan's alarms.stop_on. One that ended the run before
        it was resumed does not end it again."""
        alarm = self._watch.fatal()
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
    return plan_from(plan.content).watch_settings()


def _identity(alarm: Alarm) -> tuple[str, str, int, str, bool]:
    return alarm.code, alarm.metric, alarm.row, alarm.severity.value, alarm.recovered
