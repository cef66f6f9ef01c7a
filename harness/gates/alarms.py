"""The open alarms of an experiment's runs, and which of them have a diagnosis."""

from collections.abc import Iterator, Mapping, Sequence

from harness.artifacts.experiment_files import Diagnosis, read_diagnosis
from harness.detectors.alarm import Alarm, open_alarms
from harness.domain.findings import Finding
from harness.domain.plain_text import inline
from harness.domain.statuses import RunStatus
from harness.errors import HarnessError
from harness.gates.evidence import GateEvidence
from harness.gates.findings import finding
from harness.ledger.project import Project

_SHOWN_ROWS = 3
_LONGEST = 300
_SAY_NOTHING = frozenset({RunStatus.LOST, RunStatus.CANCELLED})


def open_by_run(project: Project, experiment: str) -> dict[str, tuple[Alarm, ...]]:
    """Run id -> its open alarms, of every run with some, in the order of registration."""
    # A lost or cancelled run says nothing about the training.
    raised: dict[str, list[Alarm]] = {}
    for alarm in project.ledger.alarms(experiment):
        raised.setdefault(alarm.run, []).append(Alarm.from_plain(alarm.alarm))
    if not raised:
        return {}
    runs = [run for run in project.ledger.runs(experiment) if run.status not in _SAY_NOTHING]
    standing = {run.id: tuple(open_alarms(raised.get(run.id, ()))) for run in runs}
    return {run: alarms for run, alarms in standing.items() if alarms}


def unanswered(
    diagnosis: Diagnosis | None, alarms: Mapping[str, Sequence[Alarm]], rows: Mapping[str, int]
) -> list[tuple[str, Alarm, str]]:
    """(run, alarm, why) of each alarm whose run and code the diagnosis does not name, or with rows
    that the run does not have. `rows`: run id -> number of rows."""
    return [
        (run, alarm, why)
        for run, raised in alarms.items()
        for alarm in raised
        if (why := _missing(diagnosis, run, alarm, rows.get(run, 0)))
    ]


def standing_diagnosis(project: Project, experiment: str) -> Diagnosis | None:
    """None when diagnosis.md is absent or cannot be read."""
    try:
        return read_diagnosis(project.layout.experiment(experiment, "diagnosis"))
    except HarnessError:
        return None


def undiagnosed_runs(project: Project, experiment: str) -> list[str]:
    """Runs with an open alarm that diagnosis.md does not explain."""
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
    named = [
        answer for answer in diagnosis.alarms if (answer.run, answer.code) == (run, alarm.code)
    ]
    if not named:
        return f"diagnosis.md names no {alarm.code} of {run}"
    outside = sorted({row for answer in named for row in answer.rows if row > rows})
    if outside:
        return f"diagnosis.md quotes row {outside[0]} of {run}, which has {rows}"
    return ""


def as_news(name: str, alarm: Alarm) -> str:
    """One alarm of the run `name` in one paragraph; its message may hold the training's words, so
    it is quoted and cut."""
    rows = ", ".join(
        f"row {point.row}: {point.value:g}" for point in alarm.evidence[-_SHOWN_ROWS:]
    )
    tries = " ".join(alarm.tries)
    over = " It is over." if alarm.recovered else ""
    text = (
        f"{name} raised {alarm.severity} {alarm.code} at row {alarm.row}:"
        f" {inline(alarm.message, _LONGEST)}"
    )
    return f"{text} ({rows}).{over} {f'Try: {tries}' if tries else ''}".strip()


def undiagnosed(evidence: GateEvidence) -> Iterator[Finding]:
    """Every open alarm has a diagnosis that names it, with rows that exist."""
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
