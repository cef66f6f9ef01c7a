"""One experiment in full, as plain data."""

from typing import Any

from harness.audit.check import standing
from harness.domain.records import Experiment
from harness.project.context import Project


def details(project: Project, experiment: Experiment) -> dict[str, Any]:
    """`folder`, and as lists, oldest first, `runs`, `checkpoints`, `evaluations`, `verdicts` and `decisions`.

    `standing` is what the newest verdict is worth now: STALE when something that it read changed.
    """
    ledger = project.ledger
    verdicts = ledger.verdicts(experiment.id)
    return {
        "standing": standing(project, verdicts[-1]) if verdicts else None,
        "folder": str(project.layout.experiment(experiment.id)),
        "runs": [
            {
                "run": run.id,
                "seed": run.seed,
                "attempt": run.attempt,
                "status": run.status,
                "seconds": None if run.seconds is None else round(run.seconds, 1),
                "rows": run.rows,
                "cage": run.cage,
                "reason": run.reason,
            }
            for run in ledger.runs(experiment.id)
        ],
        "checkpoints": [
            {"run": item.run, "checkpoint": item.id, "epoch": item.epoch, "final": item.final, "bytes": item.bytes}
            for item in ledger.checkpoints(experiment.id)
        ],
        "evaluations": [
            {
                "run": item.run,
                "seed": item.seed,
                "split": item.split,
                "metric": item.metric,
                "value": item.value,
                "interval": None if item.interval is None else list(item.interval),
                "n": item.n,
                "query": item.query,
                "cage": item.cage,
            }
            for item in ledger.evaluations(experiment.id)
        ],
        "verdicts": [
            {
                "verdict_id": item.id,
                "gate": item.gate,
                "verdict": item.verdict,
                "notes": list(item.notes),
                "at": item.at,
            }
            for item in verdicts
        ],
        "decisions": [
            {"id": item.id, "kind": item.kind, "by": item.by, "verdict": item.verdict, "reason": item.reason}
            for item in ledger.decisions(experiment.id)
        ],
    }
