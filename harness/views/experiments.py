"""One experiment in full, or two side by side, as plain data."""

from typing import Any

from harness.domain.records import Experiment
from harness.domain.statuses import CLOSED_EXPERIMENTS, Split, Verdict
from harness.errors import RefusedError
from harness.evaluation.comparison import compare_experiments
from harness.evaluation.outcome import explain
from harness.evaluation.scores import Score, counted_evaluations, summarise
from harness.gates.check import standing
from harness.ledger.facts import RecordedVerdict
from harness.ledger.ledger import Ledger
from harness.ledger.project import Project


def details(project: Project, experiment: Experiment) -> dict[str, Any]:
    """The folder of an experiment, and lists of all it has, oldest first.

    `standing` is the newest verdict as of now: STALE if its evidence changed. `checked` is
    "elsewhere" when the checkpoints of a decided experiment are not on this machine, as in a clone:
    the verdict is then the ledger's and is not re-checked. `removed` is the time at which
    `harness gc` removed a checkpoint, or None.
    """
    ledger = project.ledger
    verdicts = ledger.verdicts(experiment.id)
    elsewhere = experiment.status in CLOSED_EXPERIMENTS and _lacks_checkpoints(project, experiment)
    removed = {
        (fact.run, fact.checkpoint): at for fact, at in ledger.removed_checkpoints(experiment.id)
    }
    return {
        "standing": _standing(project, verdicts[-1], elsewhere=elsewhere) if verdicts else None,
        "checked": ("elsewhere" if elsewhere else "here") if verdicts else None,
        "folder": str(project.layout.experiment(experiment.id)),
        "runs": _runs(ledger, experiment.id),
        "alarms": _alarms(ledger, experiment.id),
        "imported": [
            {
                "log": log["path"],
                "format": log["format"],
                "runs": len(log["runs"]),
                "by": log["by"],
                "at": log["at"],
            }
            for log in ledger.imported_logs(experiment.id)
        ],
        "checkpoints": [
            {
                "run": item.run,
                "checkpoint": item.id,
                "epoch": item.epoch,
                "final": item.final,
                "bytes": item.bytes,
                "removed": removed.get((item.run, item.id)),
            }
            for item in ledger.checkpoints(experiment.id)
        ],
        "evaluations": _evaluations(ledger, experiment.id),
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
            {
                "id": item.id,
                "kind": item.kind,
                "by": item.by,
                "verdict": item.verdict,
                "reason": item.reason,
            }
            for item in ledger.decisions(experiment.id)
        ],
    }


def _runs(ledger: Ledger, experiment: str) -> list[dict[str, Any]]:
    return [
        {
            "run": run.id,
            "seed": run.seed,
            "attempt": run.attempt,
            "status": run.status,
            "seconds": None if run.seconds is None else round(run.seconds, 1),
            "rows": run.rows,
            "sandbox": run.sandbox,
            "reason": run.reason,
        }
        for run in ledger.runs(experiment)
    ]


def _alarms(ledger: Ledger, experiment: str) -> list[dict[str, Any]]:
    return [
        {
            "run": item.run,
            "severity": item.alarm["severity"],
            "code": item.alarm["code"],
            "row": item.alarm["row"],
            "recovered": item.alarm["recovered"],
            "message": item.alarm["message"],
            "try": " ".join(item.alarm["try"]),
        }
        for item in ledger.alarms(experiment)
    ]


def _evaluations(ledger: Ledger, experiment: str) -> list[dict[str, Any]]:
    return [
        {
            "run": item.run,
            "seed": item.seed,
            "split": item.split,
            "metric": item.metric,
            "value": item.value,
            "interval": None if item.interval is None else list(item.interval),
            "n": item.n,
            "query": item.query,
            "sandbox": item.sandbox,
        }
        for item in ledger.evaluations(experiment)
    ]


def _standing(project: Project, verdict: RecordedVerdict, *, elsewhere: bool) -> Verdict:
    return verdict.verdict if elsewhere else standing(project, verdict)


def _lacks_checkpoints(project: Project, experiment: Experiment) -> bool:
    """Whether all final checkpoints that `harness gc` kept are missing: git does not carry them."""
    removed = {
        (fact.run, fact.checkpoint) for fact, _ in project.ledger.removed_checkpoints(experiment.id)
    }
    finals = [
        item
        for item in project.ledger.checkpoints(experiment.id)
        if item.final and (item.run, item.id) not in removed
    ]
    return bool(finals) and not any((project.layout.root / item.path).exists() for item in finals)


def comparison(project: Project, candidate: str, reference: str) -> dict[str, Any]:
    """The comparison of two experiments on validation, where experiments compete.

    Keys: `candidate` and `reference` {experiment, score, spread, n_seeds, evidence}, and those of
    `evaluation.judgement`. Scores are those of the plan in force. Raises NotFoundError for an
    unknown id, RefusedError when one has no score.
    """
    scores = {name: _score(project, name) for name in (candidate, reference)}
    result = compare_experiments(project, project.plan(), candidate, reference)
    assert result is not None  # both have a score
    return {
        "split": Split.VALIDATION,
        "candidate": _plain(candidate, scores[candidate]),
        "reference": _plain(reference, scores[reference]),
        **{name: value for name, value in result.items() if name != "seeds"},
        "why": explain(result),
    }


def _score(project: Project, identifier: str) -> Score:
    experiment = project.ledger.experiment(identifier)
    score = summarise(counted_evaluations(project, experiment.id, project.plan(), Split.VALIDATION))
    if score is None:
        raise RefusedError(
            f"{experiment.id} has no recomputed validation score under the plan in force.",
            hint=f"Run `harness evaluate {experiment.id}` first.",
            code="no_score",
        )
    return score


def _plain(identifier: str, score: Score) -> dict[str, Any]:
    return {
        "experiment": identifier,
        "score": score.mean,
        "spread": score.spread,
        "n_seeds": score.n_seeds,
        "evidence": score.evidence,
    }
