"""What a model's next step asks, each with what was found."""

from collections.abc import Mapping
from typing import Any

from harness.domain.models import BASE, Model, ModelEvaluation, ModelHistory, ModelState
from harness.domain.statuses import RunStatus, SandboxKind, Verdict
from harness.ledger.project import Project
from harness.posttrain.shadow import shadow_checks
from harness.posttrain.thresholds import THRESHOLDS, Check, Thresholds
from harness.posttrain.vocabulary import Evaluator


def checks_for(
    project: Project, model: Model, history: ModelHistory, thresholds: Thresholds = THRESHOLDS
) -> tuple[list[Check], dict[str, str]]:
    """What the model's next step asks, each with what was found; and the hashes of all that was
    read."""
    run = project.ledger.run(model.experiment, model.run)
    latest: dict[tuple[str, str, str], ModelEvaluation] = {
        item.subject: item for item in history.evaluations
    }
    checks = [
        Check(
            constraint="run",
            actual=run.status.value,
            threshold="completed",
            passed=run.status is RunStatus.COMPLETED,
        )
    ]
    checks.append(_evaluated(model, latest, history))
    passing = [item for item in latest.values() if item.verdict == Verdict.PASS]
    for item in passing:
        checks.append(
            Check(
                constraint=f"{item.id} delta",
                actual=item.delta,
                threshold=thresholds.delta,
                passed=(item.delta or 0.0) >= thresholds.delta,
            )
        )
        if (
            item.benchmark["evaluator"] != Evaluator.PERPLEXITY
        ):  # nats have no scale on which a number is good
            good = (item.candidate or 0.0) >= thresholds.quality
            checks.append(
                Check(
                    constraint=f"{item.id} quality",
                    actual=item.candidate,
                    threshold=thresholds.quality,
                    passed=good,
                )
            )
        if not isinstance(item.benchmark["evaluator"], str):
            checks.append(_own_evaluator(item))
    evidence = {"model": model.id, **{item.id: item.hash for item in latest.values()}}
    if model.state in (ModelState.SHADOW, ModelState.PROMOTABLE):
        more, read = shadow_checks(project, model, history, thresholds)
        checks, evidence = checks + more, evidence | read
    return checks, evidence


def _own_evaluator(item: ModelEvaluation) -> Check:
    """The score is of the program that was specified, and what kept it from the rest of the machine
    is told."""
    ran, specified = item.evidence.get("evaluator"), item.benchmark["evaluator"].get("code_hash")
    isolated = (
        f"in {item.sandbox}"
        if item.sandbox not in (None, SandboxKind.NONE.value)
        else "not isolated"
    )
    return Check(
        constraint=f"{item.id} evaluator",
        actual=f"{str(ran)[:12]}, {isolated}",
        threshold=f"the code that was specified, {str(specified)[:12]}",
        passed=ran is not None and ran == specified,
    )


def _evaluated(model: Model, latest: Mapping[Any, ModelEvaluation], history: ModelHistory) -> Check:
    """All of the latest pass, one of them against the base model, and after a revocation one is
    newer than it."""
    verdicts = {item.id: item.verdict for item in latest.values()}
    good = set(verdicts.values()) == {Verdict.PASS.value} and any(
        item.against == BASE for item in latest.values()
    )
    if model.state is ModelState.REVOKED:
        fallen = history.moves[-1].at
        good = good and any(item.at > fallen for item in latest.values())
    return Check(
        constraint="evaluations",
        actual=verdicts or "none",
        threshold="all latest PASS, one against the base",
        passed=good,
    )
