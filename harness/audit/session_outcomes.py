"""What the ledger says of the experiments that a session worked on."""

from typing import Any

from harness.ledger.project import Project


def session_outcomes(project: Project) -> dict[str, list[dict[str, Any]]]:
    """Session -> its experiments: {experiment, status, verdicts, decisions, alarms}.

    A session worked on the experiments that it opened or served, and on those whose runs it
    started; a plain one also on those that were open while it was seen.
    """
    ledger = project.ledger
    served = {one.id: one.experiment for one in ledger.sessions()}
    found: dict[str, list[dict[str, Any]]] = {}
    for experiment in ledger.experiments():
        name = experiment.id
        sessions = {experiment.session, *ledger.sessions_seen(name)}
        sessions |= {run.session for run in ledger.runs(name)}
        sessions |= {session for session, of in served.items() if of == name}
        told = {
            "experiment": name,
            "status": experiment.status.value,
            "verdicts": [
                {
                    "gate": str(verdict.gate),
                    "verdict": str(verdict.verdict),
                    "findings": [finding.code for finding in verdict.findings],
                    "at": verdict.at,
                }
                for verdict in ledger.verdicts(name)
            ],
            "decisions": [
                {"kind": str(one.kind), "reason": one.reason, "at": one.at}
                for one in ledger.decisions(name)
            ],
            "alarms": [
                {"run": alarm.run, "code": str(alarm.alarm.get("code")), "at": alarm.at}
                for alarm in ledger.alarms(name)
            ],
        }
        for session in filter(None, sessions):
            found.setdefault(session, []).append(told)
    return found
