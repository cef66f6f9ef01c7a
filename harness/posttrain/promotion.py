"""A model's way to be served, one step a decision: candidate, shadow, promotable, deployed, retired. Every step is a
person's; each re-reads all evidence inside the ledger's transaction, so nothing can change between look and step."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.clock import parse_iso
from harness.domain.models import Model, ModelEvaluation, ModelHistory, ModelState, Serving
from harness.domain.program_facts import ModelMoved, ModelServed, ShadowObserved
from harness.domain.records import Decision
from harness.domain.statuses import DecisionKind, RunStatus, Verdict
from harness.errors import NotFoundError, RefusedError, UsageError
from harness.posttrain.evaluate import intact, revocation
from harness.posttrain.thresholds import THRESHOLDS, Thresholds
from harness.posttrain.vocabulary import Evaluator
from harness.project.context import Project

NEXT = {
    ModelState.REGISTERED: ModelState.CANDIDATE,
    ModelState.REVOKED: ModelState.CANDIDATE,
    ModelState.CANDIDATE: ModelState.SHADOW,
    ModelState.SHADOW: ModelState.PROMOTABLE,
    ModelState.PROMOTABLE: ModelState.DEPLOYED,
}
REJECTED_BY_ARBITER = "rejected"
NOT_EXECUTED = frozenset({"timed_out", "failed", "invalid_output"})
OUTCOMES = ("accepted", REJECTED_BY_ARBITER, *sorted(NOT_EXECUTED))


@dataclass(frozen=True, kw_only=True)
class Check:
    constraint: str
    actual: Any
    threshold: Any
    passed: bool


@dataclass(frozen=True, kw_only=True)
class Promotion:
    model: str
    before: ModelState
    after: ModelState
    """The same as before when the step was refused."""
    checks: tuple[Check, ...]
    decision: Decision | None

    @property
    def moved(self) -> bool:
        return self.before is not self.after


def checks_for(
    project: Project, model: Model, history: ModelHistory, thresholds: Thresholds = THRESHOLDS
) -> tuple[list[Check], dict[str, str]]:
    """What the model's next step asks, each with what was found; and the hashes of all that was read."""
    run = project.ledger.run(model.experiment, model.run)
    latest: dict[tuple[str, str], ModelEvaluation] = {item.subject: item for item in history.evaluations}
    checks = [Check(constraint="run", actual=run.status.value, threshold="completed", passed=_completed(run.status))]
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
        scale = item.benchmark["evaluator"] != Evaluator.PERPLEXITY
        good = scale and (item.candidate or 0.0) >= thresholds.quality
        checks.append(
            Check(constraint=f"{item.id} quality", actual=item.candidate, threshold=thresholds.quality, passed=good)
        )
    evidence = {"model": model.id, **{item.id: item.hash for item in latest.values()}}
    if model.state in (ModelState.SHADOW, ModelState.PROMOTABLE):
        more, read = _shadow(project, model, history, thresholds)
        checks, evidence = checks + more, evidence | read
    return checks, evidence


def _completed(status: RunStatus) -> bool:
    return status is RunStatus.COMPLETED


def _evaluated(model: Model, latest: Mapping[Any, ModelEvaluation], history: ModelHistory) -> Check:
    """At least one passes, none of the latest says otherwise, and after a revocation one is newer than it."""
    verdicts = {item.id: item.verdict for item in latest.values()}
    good = bool(verdicts) and set(verdicts.values()) == {Verdict.PASS.value}
    if model.state is ModelState.REVOKED:
        fallen = history.moves[-1].at
        good = good and any(item.at > fallen for item in latest.values())
    return Check(constraint="evaluations", actual=verdicts or "none", threshold="all latest PASS", passed=good)


def _shadow(
    project: Project, model: Model, history: ModelHistory, thresholds: Thresholds
) -> tuple[list[Check], dict[str, str]]:
    """Of the answers since the model came into shadow, the last time."""
    began = max(move.at for move in history.moves if move.after is ModelState.SHADOW)
    seen = [item for item in history.observations if item.at >= began]
    outcomes = [item.outcome for item in seen]
    count = len(seen)
    arbiter = outcomes.count(REJECTED_BY_ARBITER) / count if count else 1.0
    broken = sum(outcome in NOT_EXECUTED for outcome in outcomes) / count if count else 1.0
    passed = (project.clock.now() - parse_iso(began)).total_seconds()
    limits = thresholds
    checks = [
        Check(
            constraint="shadow observations",
            actual=count,
            threshold=limits.observations,
            passed=count >= limits.observations,
        ),
        Check(
            constraint="shadow seconds",
            actual=passed,
            threshold=limits.shadow_seconds,
            passed=passed >= limits.shadow_seconds,
        ),
        Check(
            constraint="arbiter rejection",
            actual=arbiter,
            threshold=limits.arbiter_rejection,
            passed=arbiter <= limits.arbiter_rejection,
        ),
        Check(
            constraint="execution rejection",
            actual=broken,
            threshold=limits.execution_rejection,
            passed=broken <= limits.execution_rejection,
        ),
    ]
    return checks, {f"observation {place}": item.hash for place, item in enumerate(seen, 1)}


def promote(project: Project, identifier: str, *, by: str, reason: str) -> Promotion:
    """One step, when every check of it holds; else nothing is recorded, and the checks say why.

    Raises RefusedError for a state that has no next step, or when the model's bytes changed.
    """
    with project.ledger.transaction() as writer:
        model = project.ledger.model(identifier)
        after = NEXT.get(model.state)
        if after is None:
            raise RefusedError(
                f"Model {model.id[:12]} is {model.state}: there is no step to take.",
                mend="A retired one comes back by `harness posttrain rollback`; a rejected one never does.",
                code="no_next_step",
            )
        intact(project, model)
        checks, evidence = checks_for(project, model, project.ledger.model_history(model.id))
        if not all(check.passed for check in checks):
            return Promotion(model=model.id, before=model.state, after=model.state, checks=tuple(checks), decision=None)
        decision = _decide(project, model, DecisionKind.PROMOTE, f"{model.state} -> {after}", by=by, reason=reason)
        if after is ModelState.DEPLOYED:
            _retire(project, model.profile, by=by, decision=decision)
        writer.append(
            ModelMoved(
                model=model.id,
                before=model.state.value,
                after=after.value,
                why=reason,
                by=by,
                checks=[asdict(check) for check in checks],
                evidence=evidence,
                decision=decision.id,
            )
        )
        if after is ModelState.DEPLOYED:
            _point(project, model, how="deploy", why=reason, by=by, decision=decision)
        return Promotion(model=model.id, before=model.state, after=after, checks=tuple(checks), decision=decision)


def reject_model(project: Project, identifier: str, *, by: str, reason: str) -> Decision:
    """For good: it is never served again; where it was, nothing is served."""
    with project.ledger.transaction() as writer:
        model = project.ledger.model(identifier)
        decision = _decide(project, model, DecisionKind.REJECT, "rejected", by=by, reason=reason)
        for fact in revocation(project, model, ModelState.REJECTED, reason, by=by, decision=decision.id):
            writer.append(fact)
        return decision


def rollback(project: Project, profile: str, *, by: str, reason: str, to: str | None = None) -> Serving:
    """Serve an earlier good model again: `to`, or the one that was served before the present one. What is rolled back
    from is not a target of later rollbacks: they go further back.

    Raises NotFoundError (nothing_to_roll_back_to), RefusedError when `to` is not retired or its latest evaluation
    failed.
    """
    with project.ledger.transaction() as writer:
        stack = serving_stack(project.ledger.servings(profile))
        now = project.ledger.servings(profile)
        current = now[-1].model if now else None
        earlier = [name for name in stack if name != current and _good(project, name)]
        chosen = project.ledger.model(to).id if to is not None else (earlier[-1] if earlier else None)
        if chosen is None:
            raise NotFoundError(
                f"No earlier good model was served for {profile}.",
                mend="`harness posttrain status` lists the models.",
                code="nothing_to_roll_back_to",
            )
        model = project.ledger.model(chosen)
        if model.profile != profile or not _good(project, chosen):
            raise RefusedError(
                f"Model {chosen[:12]} is {model.state} for {model.profile}; a rollback leads to a retired one whose "
                "evaluations still pass.",
                mend="Choose another: `harness posttrain status`.",
                code="not_a_rollback_target",
            )
        intact(project, model)
        decision = _decide(project, model, DecisionKind.ROLLBACK, f"serve {chosen[:12]}", by=by, reason=reason)
        _retire(project, profile, by=by, decision=decision)
        writer.append(
            ModelMoved(
                model=chosen,
                before=model.state.value,
                after=ModelState.DEPLOYED.value,
                why=reason,
                by=by,
                checks=[],
                evidence={"model": chosen},
                decision=decision.id,
            )
        )
        _point(project, model, how="rollback", why=reason, by=by, decision=decision)
        return project.ledger.servings(profile)[-1]


def serving_stack(history: list[Serving]) -> list[str]:
    """Models by the order in which they were deployed; a rollback takes off all that came after its target."""
    stack: list[str] = []
    for item in history:
        if item.model is None:
            continue
        if item.how == "rollback" and item.model in stack:
            stack = stack[: stack.index(item.model) + 1]
        else:
            stack = [name for name in stack if name != item.model] + [item.model]
    return stack


def _good(project: Project, identifier: str) -> bool:
    history = project.ledger.model_history(identifier)
    latest = {item.subject: item.verdict for item in history.evaluations}
    retired = project.ledger.model(identifier).state is ModelState.RETIRED
    return retired and Verdict.FAIL.value not in latest.values()


def serve_path(project: Project, profile: str) -> Path:
    """Where the deployed model of `profile` lies, its bytes checked. Raises NotFoundError (nothing_served) or
    RefusedError (model_changed)."""
    history = project.ledger.servings(profile)
    served = history[-1].model if history else None
    model = project.ledger.model(served) if served is not None else None
    if model is None or model.state is not ModelState.DEPLOYED:
        raise NotFoundError(
            f"No model is deployed for {profile}.",
            mend="Promote one, or `harness posttrain rollback`.",
            code="nothing_served",
        )
    return intact(project, model)


def observe(project: Project, identifier: str, outcome: str, *, by: str, note: str = "") -> ShadowObserved:
    """Record one shadow answer. Raises UsageError for an unknown outcome: it counts as nothing, least of all as
    accepted; RefusedError when the model is not in shadow."""
    model = project.ledger.model(identifier)
    if outcome not in OUTCOMES:
        raise UsageError(f"The outcome is {outcome!r}; expected one of {', '.join(OUTCOMES)}.", mend="Correct it.")
    if model.state is not ModelState.SHADOW:
        raise RefusedError(
            f"Model {model.id[:12]} is {model.state}, not in shadow.", mend="Promote it first.", code="not_in_shadow"
        )
    fact = ShadowObserved(model=model.id, outcome=outcome, by=by, note=note)
    project.ledger.append(fact)
    return fact


def _decide(project: Project, model: Model, kind: DecisionKind, choice: str, *, by: str, reason: str) -> Decision:
    return project.ledger.record_decision(
        kind=kind.value,
        experiment=model.experiment,
        by=by,
        context=f"model {model.id[:12]} is {model.state}",
        choice=choice,
        alternatives="",
        reason=reason,
        confidence="high",
        verdict=None,
    )


def _retire(project: Project, profile: str, *, by: str, decision: Decision) -> None:
    for model in project.ledger.models():
        if model.profile == profile and model.state is ModelState.DEPLOYED:
            project.ledger.append(
                ModelMoved(
                    model=model.id,
                    before=model.state.value,
                    after=ModelState.RETIRED.value,
                    why=f"another is served: {decision.id}",
                    by=by,
                    checks=[],
                    evidence={},
                    decision=decision.id,
                )
            )


def _point(project: Project, model: Model, *, how: str, why: str, by: str, decision: Decision) -> None:
    history = project.ledger.servings(model.profile)
    before = history[-1].model if history else None
    project.ledger.append(
        ModelServed(profile=model.profile, model=model.id, before=before, how=how, why=why, by=by, decision=decision.id)
    )
