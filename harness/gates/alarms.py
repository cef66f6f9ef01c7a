"""What stands open of an experiment's runs: the alarms that ask for a diagnosis, and which of them
have one."""

from collections.abc import Iterator, Mapping, Sequence

from harness.artifacts.experiment_files import Diagnosis, read_diagnosis
from harness.detectors.alarm import Alarm, open_alarms
from harness.domain.findings import Finding
from harness.domain.statuses import RunStatus
from harness.errors import HarnessError
from harness.gates.evidence import GateEvidence
from harness.gates.findings import finding
from harness.ledger.project import Project

_SHOWN_ROWS = 3
_LONGEST = 300
_SAY_NOTHING = frozenset({RunStatus.LOST, RunStatus.CANCELLED})


def open_by_run(project: Project, experiment: str) -> dict[str, tuple[Alarm, ...]]:
    """Run id -> its open alarms, of every run of the experiment with some, in the order of
    registration. What was lost or cancelled says nothing about the training."""
    told: dict[str, list[Alarm]] = {}
    for alarm in project.ledger.alarms(experiment):
        told.setdefault(alarm.run, []).append(Alarm.from_plain(alarm.alarm))
    if not told:
        return {}
    runs = [run for run in project.ledger.runs(experiment) if run.status not in _SAY_NOTHING]
    found = {run.id: tuple(open_alarms(told.get(run.id, ()))) for run in runs}
    return {run: alarms for run, alarms in found.items() if alarms}


def unanswered(
    diagnosis: Diagnosis | None, alarms: Mapping[str, Sequence[Alarm]], rows: Mapping[str, int]
) -> list[tuple[str, Alarm, str]]:
    """(run, alarm, why) of each alarm that the diagnosis does not explain. It does when it names
    run and code, with rows that the run has; `rows` is run id -> how many rows its logger wrote."""
    return [
        (run, alarm, why)
        for run, raised in alarms.items()
        for alarm in raised
        if (why := _missing(diagnosis, run, alarm, rows.get(run, 0)))
    ]


def standing_diagnosis(project: Project, experiment: str) -> Diagnosis | None:
    """diagnosis.md as it can be read; None when it is absent or has another form."""
    try:
        return read_diagnosis(project.layout.experiment(experiment, "diagnosis"))
    except HarnessError:
        return None


def undiagnosed_runs(project: Project, experiment: str) -> list[str]:
    """Runs with an open alarm that diagnosis.md does not explain, in the order of registration."""
    alarms = open_by_run(project, experiment)
    if not alarms:
        return []
    rows = {run.id: run.rows for run in project.ledger.runs(experiment)}
    return list(
        dict.fromkeys(
            run for run, _, _ in unanswered(standing_diagnosis(project, experiment), alarms, rows)
        )
    )


def _missing(diagnosis: Diagnosis | None, run: str, alarm: Alarm, rows: int) -> str:
    if diagnosis is None:
        return "there is no diagnosis.md that can be read"
    named = [item for item in diagnosis.alarms if (item.run, item.code) == (run, alarm.code)]
    if not named:
        return f"diagnosis.md names no {alarm.code} of {run}"
    outside = sorted({row for item in named for row in item.rows if row > rows})
    if outside:
        return f"diagnosis.md quotes row {outside[0]} of {run}, which has {rows}"
    return ""


def as_news(name: str, alarm: Alarm) -> str:
    """One alarm in one paragraph, for whoever works on the run `name`; texts of the training are
    cut short."""
    rows = ", ".join(f"row {point.row}: {point.value:g}" for point in alarm.evidence[-_SHOWN_ROWS:])
    tries = " ".join(alarm.tries)
    over = " It is over." if alarm.recovered else ""
    text = (
        f"{name} raised {alarm.severity} {alarm.code} at row {alarm.row}:"
        f" {alarm.message[:_LONGEST]}"
    )
    return f"{text} ({rows}).{over} {f'Try: {tries}' if tries else ''}".strip()


def undiagnosed(evidence: GateEvidence) -> Iterator[Finding]:
    """Every open alarm of every run has a diagnosis that names it, with rows that exist."""
    if not evidence.alarms:
        return
    if evidence.diagnosis_file is not None:
        yield from evidence.diagnosis_file.problems
    rows = {run.id: run.rows for run in evidence.launched}
    for run, alarm, why in unanswered(evidence.diagnosis, evidence.alarms, rows):
        name = f"{evidence.experiment.id}/{run}"
        yield finding(
            "alarm_undiagnosed",
            f"{name} raised the alarm {alarm.code} at row {alarm.row} ({alarm.message}), and"
            f" {why}.",
            run=name,
            alarm=alarm.code,
            row=alarm.row,
        )
