"""The demo's report: a row per experiment, each number with its evidence level, and next steps."""

from typing import Any

from harness.artifacts.experiment_files import read_result
from harness.domain.records import Experiment
from harness.domain.statuses import Evidence, Split, spoken
from harness.errors import UsageError
from harness.evaluation.released import released_score
from harness.ledger.facts import LoopEnded, RaisedAlarm, Session
from harness.ledger.project import Project

HEADS = ("experiment", "claim", "validation", "held-out", "gate", "decision")


def report(project: Project, ended: LoopEnded, *, seconds: float) -> dict[str, Any]:
    """{project, reason, detail, experiments[], seconds, text}."""
    experiments = [_row(project, one) for one in project.ledger.experiments()]
    return {
        "project": str(project.layout.root),
        "reason": ended.reason,
        "detail": ended.detail,
        "experiments": experiments,
        "seconds": round(seconds, 1),
        "text": _text(project, ended, experiments, seconds),
    }


def _row(project: Project, experiment: Experiment) -> dict[str, Any]:
    verdicts = project.ledger.verdicts(experiment.id)
    decisions = project.ledger.decisions(experiment.id)
    return {
        "experiment": experiment.id,
        "hypothesis": experiment.hypothesis,
        "claims": _claims(project, experiment),
        "scores": {split.value: _score(project, experiment, split) for split in Split},
        "verdicts": {one.gate: one.verdict for one in verdicts},
        "decision": decisions[-1].kind if decisions else None,
        "alarms": [_alarm(raised) for raised in project.ledger.alarms(experiment.id)],
        "diagnosed_by": [
            session.id for session in project.ledger.sessions() if _explains(session, experiment)
        ],
        "findings": [found.plain() for found in verdicts[-1].findings] if verdicts else [],
    }


def _alarm(raised: RaisedAlarm) -> str:
    alarm = raised.alarm
    return (
        f"{raised.run}: {alarm['severity']} {alarm['code']} at row {alarm['row']}:"
        f" {alarm['message']}"
    )


def _explains(session: Session, experiment: Experiment) -> bool:
    return session.role == "training-checker" and session.experiment == experiment.id


def _claims(project: Project, experiment: Experiment) -> dict[str, str]:
    path = project.layout.experiment(experiment.id, "result")
    try:
        return {name: claim.text for name, claim in read_result(path).claims.items()}
    except UsageError:
        return {}


def _score(project: Project, experiment: Experiment, split: Split) -> dict[str, Any] | None:
    return released_score(project, experiment.id, project.plan(), split)


def _text(project: Project, ended: LoopEnded, rows: list[dict[str, Any]], seconds: float) -> str:
    table = [HEADS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(HEADS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    ]
    for row in rows:
        lines += ["", f"{row['experiment']}: {row['hypothesis']}"]
        lines += [f"  ! {alarm}" for alarm in row["alarms"]]
        path = project.layout.experiment(row["experiment"], "diagnosis")
        lines += [
            f"  explained by {name}: {project.layout.relative(path)}"
            for name in row["diagnosed_by"]
        ]
        lines += [f"  - [{finding['code']}] {finding['message']}" for finding in row["findings"]]
    root = project.layout.root
    relative = project.layout.relative
    lines += [
        "",
        f"{ended.reason}: {ended.detail} ({seconds:.0f} s)",
        "",
        f"Open next, in {root}:",
        f"  {relative(project.layout.project('checklist'))}   all experiments, one row each",
        f"  {relative(project.layout.decision_log)}   the decisions, and the reasons",
        (f"  {relative(project.layout.project('receipts'))}/   every tool call, allowed or not"),
        f"  `harness status --project {root}`, then `harness ledger verify --project {root}`",
    ]
    return "\n".join(lines)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    claims = ", ".join(f"{text} {Evidence.CLAIMED}" for text in row["claims"].values())
    verdicts = ", ".join(f"{spoken(gate)} {verdict}" for gate, verdict in row["verdicts"].items())
    validation, held_out = (
        _number(row["scores"][split.value]) for split in (Split.VALIDATION, Split.HELD_OUT)
    )
    return (
        row["experiment"],
        claims or "none",
        validation,
        held_out,
        verdicts or "not asked",
        str(row["decision"] or "none"),
    )


def _number(score: dict[str, Any] | None) -> str:
    if score is None:
        return "-"
    told = score.get("released")
    return f"{told['words'] if told else format(score['mean'], '.3f')} {score['evidence']}"
