"""One experiment in full, as plain data."""

from typing import Any

from harness.domain.records import Experiment
from harness.project.context import Project


def details(project: Project, experiment: Experiment) -> dict[str, Any]:
    """`folder`, `runs`, `checkpoints`, `evaluations`, `verdicts` and `decisions`, each a list, oldest first."""
    ledger = project.ledger
    return {
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
            {"verdict_id": item.id, "gate": item.gate, "verdict": item.verdict, "at": item.at}
            for item in ledger.verdicts(experiment.id)
        ],
        "decisions": [
            {"id": item.id, "kind": item.kind, "by": item.by, "verdict": item.verdict, "reason": item.reason}
            for item in ledger.decisions(experiment.id)
        ],
    }
