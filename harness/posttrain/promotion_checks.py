"""What a model's next step requires, and the answers of a model in shadow: given beside the
deployed one's, not used, recorded and checked before the next step."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.clock import parse_iso
from harness.domain.models import (
    BASE,
    ModelState,
)
from harness.domain.statuses import (
    RunStatus,
    SandboxKind,
    Verdict,
)
from harness.errors import (
    RefusedError,
    UsageError,
)
from harness.ledger.facts import (
    BenchmarkApproved,
    Model,
    ModelEvaluation,
    ModelHistory,
    ShadowObserved,
)
from harness.ledger.project import Project
from harness.posttrain.benchmark_approval import approved_for
from harness.posttrain.vocabulary import (
    THRESHOLDS,
    Thresholds,
    is_bounded,
)

REJECTED_BY_ARBITER = "rejected"
NOT_EXECUTED = frozenset({"timed_out", "failed", "invalid_output"})
OUTCOMES = ("accepted", REJECTED_BY_ARBITER, *sorted(NOT_EXECUTED))


@dataclass(frozen=True, kw_only=True)
class ThresholdCheck:
    """One constraint of a step, with the actual value."""

    constraint: str
    actual: Any
    threshold: Any
    passed: bool


def checks_for(
    project: Project, model: Model, history: ModelHistory, thresholds: Thresholds = THRESHOLDS
) -> tuple[list[ThresholdCheck], dict[str, str]]:
    """The checks of the model's next step, and the hashes of all that was read."""
    run = project.ledger.run(model.experiment, model.run)
    latest: dict[tuple[str, str, str], ModelEvaluation] = {
        evaluation.subject: evaluation for evaluation in history.evaluations
    }
    completed = run.status is RunStatus.COMPLETED
    checks = [
        _check("run", run.status.value, "completed", passed=completed),
        _evaluated(model, latest, history),
    ]
    for evaluation in latest.values():
        if evaluation.verdict == Verdict.PASS:
            checks += _of_evaluation(evaluation, approved_for(project, evaluation.benchmark))
    evidence = {
        "model": model.id,
        **{evaluation.id: evaluation.hash for evaluation in latest.values()},
    }
    if model.state in (ModelState.SHADOW, ModelState.PROMOTABLE):
        more, observed = _of_shadow(project, history, thresholds)
        checks, evidence = checks + more, evidence | observed
    return checks, evidence


def _check(name: str, actual: Any, threshold: Any, *, passed: bool) -> ThresholdCheck:
    return ThresholdCheck(constraint=name, actual=actual, threshold=threshold, passed=passed)


def _evaluated(
    model: Model, latest: Mapping[Any, ModelEvaluation], history: ModelHistory
) -> ThresholdCheck:
    """The latest evaluations all pass, and one is against the base model. After a revocation one
    must be newer than it."""
    verdicts = {evaluation.id: evaluation.verdict for evaluation in latest.values()}
    good = set(verdicts.values()) == {Verdict.PASS.value} and any(
        evaluation.against == BASE for evaluation in latest.values()
    )
    if model.state is ModelState.REVOKED:
        revoked_at = history.moves[-1].at
        good = good and any(evaluation.at > revoked_at for evaluation in latest.values())
    expected = "all latest PASS, one against the base"
    return _check("evaluations", verdicts or "none", expected, passed=good)


def _of_evaluation(
    evaluation: ModelEvaluation, approved: BenchmarkApproved | None
) -> list[ThresholdCheck]:
    """By what a person asks now: an approval after the evaluation makes it one of another bar."""
    judged_by, now = evaluation.evidence.get("approval"), approved and approved.sha256
    checks = [
        _check(
            f"{evaluation.id} approval",
            str(judged_by)[:12],
            f"what a person approved, {str(now)[:12]}",
            passed=judged_by is not None and judged_by == now,
        )
    ]
    if approved is None:
        return checks
    asked, delta, evaluator = approved.thresholds, evaluation.delta, approved.evaluator
    good = delta is not None and delta >= asked["delta"]
    checks.append(_check(f"{evaluation.id} delta", delta, asked["delta"], passed=good))
    if is_bounded(evaluator):  # a log-likelihood has no scale on which a number is good
        score = evaluation.candidate
        good = score is not None and score >= asked["quality"]
        checks.append(_check(f"{evaluation.id} quality", score, asked["quality"], passed=good))
    if not isinstance(evaluator, str):
        checks.append(_own_evaluator(evaluation, evaluator.get("code_hash")))
    return checks


def _own_evaluator(evaluation: ModelEvaluation, approved: Any) -> ThresholdCheck:
    """The program that scored is the one that was approved; how it was kept is told."""
    ran = evaluation.evidence.get("evaluator")
    isolated = evaluation.sandbox not in (None, SandboxKind.NONE.value)
    isolation = f"in {evaluation.sandbox}" if isolated else "not isolated"
    return _check(
        f"{evaluation.id} evaluator",
        f"{str(ran)[:12]}, {isolation}",
        f"the code that was approved, {str(approved)[:12]}",
        passed=ran is not None and ran == approved,
    )


def _of_shadow(
    project: Project, history: ModelHistory, thresholds: Thresholds
) -> tuple[list[ThresholdCheck], dict[str, str]]:
    """Checks of the answers since the model last came into shadow, and the hashes of these."""
    # Answers before a revocation do not count for the way back.
    began = max(move.at for move in history.moves if move.after is ModelState.SHADOW)
    observations = [each for each in history.observations if each.at >= began]
    outcomes = [observation.outcome for observation in observations]
    # Without answers both shares are 1: nothing observed must not look like nothing wrong.
    count = len(outcomes)
    rejected = outcomes.count(REJECTED_BY_ARBITER) / count if count else 1.0
    broken = sum(outcome in NOT_EXECUTED for outcome in outcomes) / count if count else 1.0
    passed = (project.clock.now() - parse_iso(began)).total_seconds()
    checks = [
        _check(name, actual, least, passed=actual >= least)
        for name, actual, least in (
            ("shadow observations", count, thresholds.observations),
            ("shadow seconds", passed, thresholds.shadow_seconds),
        )
    ]
    checks += [
        _check(name, actual, most, passed=actual <= most)
        for name, actual, most in (
            ("arbiter rejection", rejected, thresholds.arbiter_rejection),
            ("execution rejection", broken, thresholds.execution_rejection),
        )
    ]
    evidence = {f"observation {place}": each.hash for place, each in enumerate(observations, 1)}
    return checks, evidence


def observe(
    project: Project, identifier: str, outcome: str, *, by: str, note: str = ""
) -> ShadowObserved:
    """Record one shadow answer. Raises UsageError for an unknown outcome, RefusedError when the
    model is not in shadow."""
    if outcome not in OUTCOMES:
        raise UsageError(
            f"The outcome is {outcome!r}; expected one of {', '.join(OUTCOMES)}.",
            hint="Correct it.",
        )
    with project.ledger.transaction() as writer:
        model = project.ledger.model(identifier)
        if model.state is not ModelState.SHADOW:
            raise RefusedError(
                f"Model {model.id[:12]} is {model.state}, not in shadow.",
                hint="Promote it first.",
                code="not_in_shadow",
            )
        fact = ShadowObserved(model=model.id, outcome=outcome, by=by, note=note)
        writer.append(fact)
    return fact
