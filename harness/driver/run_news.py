"""News of an experiment's runs: state changes, alarms and, every few seconds, the newest epoch."""

from collections.abc import Callable
from typing import Any

from harness.artifacts.training_status import read_status
from harness.detectors.alarm import Alarm
from harness.domain.records import Run
from harness.domain.statuses import FINAL_RUNS, Evidence
from harness.errors import UsageError
from harness.gates.alarms import as_news
from harness.ledger.project import Project

EPOCH_SECONDS = 5.0
MOST_METRICS = 3


def last_metrics(project: Project, run: Run) -> dict[str, Any] | None:
    """The newest epoch's numbers, as logged; None before the first."""
    # From the small status file: agents ask often, and the metrics file grows.
    try:
        status = read_status(project.layout.run(run.experiment, run.id, "status"))
    except UsageError:
        return None
    if status is None or status.epoch is None:
        return None
    return {"epoch": status.epoch, **status.metrics, "evidence": Evidence.LOGGED.value}


class AlarmNews:
    """The alarms of an experiment's runs, each one once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[str, int] = {}

    def new(self, experiment: str | None) -> list[str]:
        """A paragraph for each alarm since the last call."""
        if experiment is None:
            return []
        raised = self._project.ledger.alarms(experiment)
        before = self._known.get(experiment)
        self._known[experiment] = len(raised)
        news = raised[before or 0 :]
        # At the first call, old alarms are news only of open runs: a cut session is replayed and
        # must hear of them again, but not of runs that it has dealt with.
        if before is None and news:
            going = {
                run.id
                for run in self._project.ledger.runs(experiment)
                if run.status not in FINAL_RUNS
            }
            news = [alarm for alarm in news if alarm.run in going]
        return [
            f"harness: {as_news(f'{alarm.experiment}/{alarm.run}', Alarm.from_plain(alarm.alarm))}"
            for alarm in news
        ]


class RunNews:
    """Reports the news through `tell`; without `alarms` where the guard already reports those."""

    def __init__(
        self,
        project: Project,
        experiment: str,
        tell: Callable[[str], None],
        *,
        alarms: bool = True,
    ) -> None:
        self._project, self._experiment, self._tell = project, experiment, tell
        self._known = {run.id: run.status for run in project.ledger.runs(experiment)}
        self._due = project.clock.monotonic() + EPOCH_SECONDS
        self._alarms = AlarmNews(project) if alarms else None
        if self._alarms is not None:
            self._alarms.new(experiment)

    def look(self) -> None:
        for text in self._alarms.new(self._experiment) if self._alarms is not None else ():
            self._tell(text)
        for run in self._project.ledger.runs(self._experiment):
            if run.status != self._known.get(run.id):
                self._known[run.id] = run.status
                reason = f": {run.reason}" if run.status in FINAL_RUNS else ""
                self._tell(f"{run.experiment}/{run.id} (seed {run.seed}) {run.status}{reason}")
            elif run.status not in FINAL_RUNS and self._project.clock.monotonic() >= self._due:
                self._due = self._project.clock.monotonic() + EPOCH_SECONDS
                self._tell(self._epoch(run))

    def _epoch(self, run: Run) -> str:
        name = f"{run.experiment}/{run.id}"
        try:
            status = read_status(self._project.layout.run(run.experiment, run.id, "status"))
        except UsageError as error:
            return f"{name}: {error.message}"
        if status is None or status.epoch is None:
            return f"{name} is training; no epoch is logged yet"
        numbers = "  ".join(
            f"{key} {value:.4g}" for key, value in list(status.metrics.items())[:MOST_METRICS]
        )
        return f"{name} epoch {status.epoch}  {numbers}".rstrip()
