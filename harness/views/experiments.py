"""One experiment in full, or two side by side, as plain data."""

from typing import Any

from harness.artifacts.looked import looking
from harness.domain.records import Experiment
from harness.domain.statuses import Split, Verdict
from harness.errors import RefusedError
from harness.evaluation.comparison import compare_experiments, released_comparison
from harness.evaluation.outcome import HIDDEN_LABELS, TRIVIAL, explain
from harness.evaluation.predict_sources import whose
from harness.evaluation.released import bits_limit, bits_told, released_score
from harness.evaluation.scores import trained_seconds
from harness.evaluation.tries import Standings
from harness.gates.check import standing
from harness.ledger.facts import ApprovedPlan, RecordedVerdict
from harness.ledger.ledger import Ledger
from harness.ledger.project import Project
from harness.plans.approved import plan_of, secret
from harness.plans.changes import changed_since
from harness.views.snapshot import checked_elsewhere

_DIGITS = 12
"""Of a digest that tells two from each other."""


def details(project: Project, experiment: Experiment) -> dict[str, Any]:
    """The folder of an experiment, and lists of all it has, oldest first.

    `standing` is the newest verdict as of now: STALE if its evidence changed. `checked` is
    "elsewhere" when the experiment is of another working tree, or the checkpoints of a decided one
    are not on this machine, as in a clone: the verdict is then the ledger's and is not re-checked.
    `removed` is the time at which `harness gc` removed a checkpoint, or None. `told` are the bits
    that its looks told of secret labels, and those of its plan. `libraries` of a run are the first
    digits of their digest. `predict_code`: whose predict and whose training made the score.
    """
    ledger = project.ledger
    verdicts = ledger.verdicts(experiment.id)
    elsewhere = checked_elsewhere(project, experiment)
    return {
        "standing": _standing(project, verdicts[-1], elsewhere=elsewhere) if verdicts else None,
        "checked": ("elsewhere" if elsewhere else "here") if verdicts else None,
        "told": _told(project, experiment),
        "approved_since": [
            {"version": plan.version, "by": plan.by, "changed": words}
            for plan, words in changed_since(project, experiment.plan, experiment.plan_version)
        ],
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
        "checkpoints": _checkpoints(ledger, experiment.id),
        "predict_code": whose(project, experiment.id),
        "evaluations": _evaluations(ledger, experiment.id),
        "verdicts": [
            {"verdict_id": one.id, "gate": one.gate, "verdict": one.verdict}
            | {"notes": list(one.notes), "at": one.at}
            for one in verdicts
        ],
        "decisions": [
            {
                "id": decision.id,
                "kind": decision.kind,
                "by": decision.by,
                "verdict": decision.verdict,
                "reason": decision.reason,
            }
            for decision in ledger.decisions(experiment.id)
        ],
        "reproductions": reproductions(ledger, experiment.id),
    }


def reproductions(ledger: Ledger, experiment: str) -> list[dict[str, Any]]:
    """What second trainings of a kept experiment came to, oldest first."""
    names = ("reproduction", "outcome", "difference", "floor", "why", "by")
    return [
        {**{name: getattr(made, name) for name in names}, "changed": list(made.changed), "at": at}
        for made, at in ledger.reproductions(experiment)
    ]


def _told(project: Project, experiment: Experiment) -> dict[str, float] | None:
    """What its looks told about secret labels, in bits; None for one without a plan."""
    if not experiment.plan:
        return None
    approved = plan_of(project, experiment)
    return {
        "experiment_bits": round(
            sum(one.bits for one in project.ledger.releases(experiment.id)), 1
        ),
        "plan_bits": round(bits_told(project, approved), 1),
        "bits": bits_limit(approved),
    }


def _checkpoints(ledger: Ledger, experiment: str) -> list[dict[str, Any]]:
    removed = {
        (fact.run, fact.checkpoint): at for fact, at in ledger.removed_checkpoints(experiment)
    }
    return [
        {
            "run": checkpoint.run,
            "checkpoint": checkpoint.id,
            "epoch": checkpoint.epoch,
            "final": checkpoint.final,
            "bytes": checkpoint.bytes,
            "removed": removed.get((checkpoint.run, checkpoint.id)),
        }
        for checkpoint in ledger.checkpoints(experiment)
    ]


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
            "caller": run.caller,
            "libraries": run.environment.get("libraries", "")[:_DIGITS] or None,
            "resources": run.resources,
            "reason": run.reason,
        }
        for run in ledger.runs(experiment)
    ]


def _alarms(ledger: Ledger, experiment: str) -> list[dict[str, Any]]:
    return [
        {
            "run": raised.run,
            "severity": raised.alarm["severity"],
            "code": raised.alarm["code"],
            "row": raised.alarm["row"],
            "recovered": raised.alarm["recovered"],
            "message": raised.alarm["message"],
            "try": " ".join(raised.alarm["try"]),
        }
        for raised in ledger.alarms(experiment)
    ]


def _evaluations(ledger: Ledger, experiment: str) -> list[dict[str, Any]]:
    trained = {
        run.id: None if run.seconds is None else round(trained_seconds(ledger, run), 1)
        for run in ledger.runs(experiment)
    }
    return [
        {
            "run": evaluation.run,
            "seed": evaluation.seed,
            "split": evaluation.split,
            "metric": evaluation.metric,
            "value": evaluation.value,
            "scored": evaluation.scored,
            "interval": None if evaluation.interval is None else list(evaluation.interval),
            "n": evaluation.n,
            "query": evaluation.query,
            "sandbox": evaluation.sandbox,
            "predict_seconds": evaluation.predict_seconds,
            "training_seconds": trained.get(evaluation.run),
            "caller": evaluation.caller,
        }
        for evaluation in ledger.evaluations(experiment)
    ]


def _standing(project: Project, verdict: RecordedVerdict, *, elsewhere: bool) -> Verdict:
    if elsewhere:
        return verdict.verdict
    with looking(project.layout.looked):
        return standing(project, verdict)


def comparison(project: Project, candidate: str, reference: str) -> dict[str, Any]:
    """The comparison of two experiments on validation, where experiments compete.

    Keys: `candidate` and `reference` {experiment, score, spread, n_seeds, evidence, released}, and
    those of `evaluation.judgement`. Scores are those of the plan in force. Of hidden labels only
    what a gate told before: each further pair would tell more. Raises NotFoundError for an unknown
    id, RefusedError when one has no score (no_score).
    """
    approved = project.plan()
    scores = {name: _score(project, name) for name in (candidate, reference)}
    if secret(approved, Split.VALIDATION.value):
        result = _told_before(project, approved, candidate, reference)
    else:
        made = compare_experiments(project, approved, candidate, reference)
        assert made is not None  # both have a score
        result = {**made, "why": explain(made)}
    return {
        "split": Split.VALIDATION,
        "candidate": _plain(candidate, scores[candidate]),
        "reference": _plain(reference, scores[reference]),
        **{name: value for name, value in result.items() if name != "seeds"},
    }


def _told_before(
    project: Project, approved: ApprovedPlan, candidate: str, reference: str
) -> dict[str, Any]:
    record = project.ledger.experiment(candidate)
    told = released_comparison(project, record, approved)
    against = Standings(project, approved).reference(record) or TRIVIAL
    if told is not None:
        against = told["against"]
        if against == reference:
            return {**told, "why": explain(told)}
    return {
        "better": None,
        "labels": HIDDEN_LABELS,
        "why": f"Which one is better is not told: the labels are hidden, and of {candidate} the"
        f" gate alone says whether it is better than its reference, {against}"
        f" (`harness gate check {candidate}`).",
    }


def _score(project: Project, identifier: str) -> dict[str, Any]:
    experiment = project.ledger.experiment(identifier)
    score = released_score(project, experiment.id, project.plan(), Split.VALIDATION)
    if score is None:
        raise RefusedError(
            f"{experiment.id} has no recomputed validation score under the plan in force.",
            hint=f"Run `harness evaluate {experiment.id}` first.",
            code="no_score",
        )
    return score


def _plain(identifier: str, score: dict[str, Any]) -> dict[str, Any]:
    return {
        "experiment": identifier,
        "score": score["mean"],
        "spread": score["spread"],
        "n_seeds": score["n_seeds"],
        "evidence": score["evidence"],
        "released": score.get("released"),
    }
