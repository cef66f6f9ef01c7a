"""The check that what the detectors said was explained."""

from collections.abc import Iterator

from harness.domain.findings import Finding
from harness.gates.evidence import GateEvidence
from harness.gates.findings import finding
from harness.gates.open_alarms import unanswered


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
