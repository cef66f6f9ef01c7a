"""`alarms.stop_on: behind_parent`: what a run is compared with, and the decision to end it."""

from dataclasses import replace

from harness.artifacts.metrics_file import rows_in
from harness.decisions.experiments import decide
from harness.detectors.alarm import Alarm
from harness.detectors.rows import row_from
from harness.detectors.watch_settings import WatchSettings
from harness.domain.findings import STOPPED, Finding
from harness.domain.records import Run
from harness.domain.statuses import DecisionKind, RunStatus
from harness.evaluation.scores import counted_runs
from harness.ledger.project import Project


def beside_parent(project: Project, experiment: str, settings: WatchSettings) -> WatchSettings:
    """With the curves of the plan's metric in the completed runs of what the experiment builds
    on."""
    parent = project.ledger.experiment(experiment).parent
    if parent is None:
        return settings
    curves: dict[str, dict[float, list[float]]] = {}
    for one in counted_runs(project.ledger.runs(parent)):
        if one.status is not RunStatus.COMPLETED:
            continue
        path = project.layout.run(parent, one.id, "metrics")
        for number, plain in enumerate(rows_in(path), start=1):
            row = row_from(plain, number)
            if row.event != "epoch" or row.place is None:
                continue
            for key in settings.directions.keys() & row.metrics.keys():
                curves.setdefault(key, {}).setdefault(row.place, []).append(row.metrics[key])
    known = {
        key: {place: tuple(values) for place, values in there.items()}
        for key, there in curves.items()
    }
    return replace(settings, parent=known)


def record_behind(project: Project, run: Run, alarm: Alarm) -> None:
    """The run ends because it trails its parent: a decision, with what shows it."""
    parent = project.ledger.experiment(run.experiment).parent
    decide(
        project,
        kind=DecisionKind.STOP,
        experiment=None,
        by="harness",
        context=f"{run.experiment}/{run.id} builds on {parent}.",
        choice="End it: it trails its parent at the same place (alarms.stop_on: behind_parent).",
        alternatives="Let it train to its end.",
        reason=f"At row {alarm.row}, {alarm.message}.",
        confidence="medium",
    )


def stopped_behind(run: Run, alarm: Alarm) -> Finding:
    """Why the harness ended the run."""
    name = f"{run.experiment}/{run.id}"
    return Finding(
        STOPPED,
        f"{name} was stopped at row {alarm.row}: it trails its parent, {alarm.message}.",
        "Try another idea; or leave behind_parent out of `alarms.stop_on` in the plan.",
        {"run": name, "alarm": alarm.code, "row": alarm.row},
    )
