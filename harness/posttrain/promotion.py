"""A model's way into service and out of it.

States: registered, candidate, shadow, promotable, deployed, retired; revoked and rejected lead out.
Each step up is a person's decision. It reads all evidence inside the ledger's transaction, so that
nothing changes between check and step. One pointer a profile says which model is served.
"""

from dataclasses import (
    asdict,
    dataclass,
)
from pathlib import Path
from typing import Any

from harness.artifacts.content import hash_path
from harness.domain.models import ModelState
from harness.domain.statuses import (
    DecisionKind,
    Verdict,
)
from harness.errors import (
    HarnessError,
    NotFoundError,
    RefusedError,
)
from harness.ledger.facts import (
    Decision,
    Model,
    ModelMoved,
    ModelServed,
    Serving,
)
from harness.ledger.project import Project
from harness.plans.judge import require_judge
from harness.posttrain.promotion_checks import (
    ThresholdCheck,
    checks_for,
)

NEXT = {
    ModelState.REGISTERED: ModelState.CANDIDATE,
    ModelState.REVOKED: ModelState.CANDIDATE,
    ModelState.CANDIDATE: ModelState.SHADOW,
    ModelState.SHADOW: ModelState.PROMOTABLE,
    ModelState.PROMOTABLE: ModelState.DEPLOYED,
}


@dataclass(frozen=True, kw_only=True)
class Promotion:
    model: str
    before: ModelState
    after: ModelState
    """Equal to `before` when the step was refused."""
    checks: tuple[ThresholdCheck, ...]
    decision: Decision | None

    @property
    def moved(self) -> bool:
        return self.before is not self.after


def promote(project: Project, identifier: str, *, by: str, reason: str) -> Promotion:
    """Take one step when every check of it passes; otherwise nothing is recorded. Raises
    RefusedError for a state without a next step, when the model's bytes changed, or with another
    judge (judge_changed)."""
    require_judge(project)
    with project.ledger.transaction() as writer:
        model = project.ledger.model(identifier)
        before, after = model.state, NEXT.get(model.state)
        if after is None:
            raise RefusedError(
                f"Model {model.id[:12]} is {before}, which has no next step.",
                hint=(
                    "`harness posttrain rollback` serves a retired model again. A rejected model"
                    " never comes back."
                ),
                code="no_next_step",
            )
        intact(project, model)  # the evaluations are of these bytes, not of this path
        checks, evidence = checks_for(project, model, project.ledger.model_history(model.id))
        if not all(check.passed for check in checks):
            return Promotion(
                model=model.id, before=before, after=before, checks=tuple(checks), decision=None
            )
        choice = f"{before} -> {after}"
        decision = _decide(project, model, DecisionKind.PROMOTE, choice, by=by, reason=reason)
        # The old model leaves first: at no point of the chain are two of a profile deployed.
        if after is ModelState.DEPLOYED:
            _retire(project, model.profile, by=by, decision=decision)
        passed = [asdict(check) for check in checks]
        writer.append(
            _move(
                model,
                after,
                reason,
                by=by,
                decision=decision.id,
                checks=passed,
                evidence=evidence,
            )
        )
        if after is ModelState.DEPLOYED:
            _point(project, model, how="deploy", why=reason, by=by, decision=decision)
        return Promotion(
            model=model.id, before=before, after=after, checks=tuple(checks), decision=decision
        )


def reject_model(project: Project, identifier: str, *, by: str, reason: str) -> Decision:
    """Reject a model for good. Where it was served, nothing is served."""
    with project.ledger.transaction() as writer:
        model = project.ledger.model(identifier)
        decision = _decide(project, model, DecisionKind.REJECT, "rejected", by=by, reason=reason)
        for fact in revocation(
            project, model, ModelState.REJECTED, reason, by=by, decision=decision.id
        ):
            writer.append(fact)
        return decision


def rollback(
    project: Project, profile: str, *, by: str, reason: str, to: str | None = None
) -> Serving:
    """Serve an earlier good model again: `to`, or the one before the present one. Raises
    NotFoundError (nothing_to_roll_back_to), RefusedError (not_a_rollback_target, judge_changed)."""
    require_judge(project)
    with project.ledger.transaction() as writer:
        model = _rollback_target(project, profile, to)
        intact(project, model)
        choice = f"serve {model.id[:12]}"
        decision = _decide(project, model, DecisionKind.ROLLBACK, choice, by=by, reason=reason)
        _retire(project, profile, by=by, decision=decision)
        writer.append(
            _move(
                model,
                ModelState.DEPLOYED,
                reason,
                by=by,
                decision=decision.id,
                evidence={"model": model.id},
            )
        )
        _point(project, model, how="rollback", why=reason, by=by, decision=decision)
        return project.ledger.servings(profile)[-1]


def serve_path(project: Project, profile: str) -> Path:
    """Folder of the deployed model of `profile`, its bytes checked. Raises NotFoundError
    (nothing_served) or RefusedError (model_changed)."""
    served = _served(project, profile)
    model = project.ledger.model(served) if served is not None else None
    if model is None or model.state is not ModelState.DEPLOYED:
        raise NotFoundError(
            f"No model is deployed for {profile}.",
            hint="Promote one, or `harness posttrain rollback`.",
            code="nothing_served",
        )
    return intact(project, model)


def intact(project: Project, model: Model) -> Path:
    """The model's folder, hashed again. Raises RefusedError (model_changed)."""
    path = project.layout.root / model.path
    try:
        now = hash_path(path)
    except HarnessError as error:
        now = error.message
    if now != model.id:
        raise RefusedError(
            f"{path} is no longer model {model.id[:12]}: {now[:80]}.",
            hint="Restore it, or train again: a model is its bytes.",
            code="model_changed",
        )
    return path


def revocation(
    project: Project,
    model: Model,
    after: ModelState,
    why: str,
    *,
    by: str,
    decision: str | None = None,
) -> list[ModelMoved | ModelServed]:
    """The facts that take a model out of service: its move, and the cleared pointer to it."""
    facts: list[ModelMoved | ModelServed] = [_move(model, after, why, by=by, decision=decision)]
    if _served(project, model.profile) == model.id:
        facts.append(
            ModelServed(
                profile=model.profile,
                model=None,
                before=model.id,
                how="clear",
                why=why,
                by=by,
                decision=decision,
            )
        )
    return facts


def _rollback_target(project: Project, profile: str, to: str | None) -> Model:
    history = project.ledger.servings(profile)
    current = history[-1].model if history else None
    earlier = [
        name for name in serving_stack(history) if name != current and _good_again(project, name)
    ]
    chosen = project.ledger.model(to).id if to is not None else (earlier[-1] if earlier else None)
    if chosen is None:
        raise NotFoundError(
            f"No earlier good model was served for {profile}.",
            hint="`harness posttrain status` lists the models.",
            code="nothing_to_roll_back_to",
        )
    model = project.ledger.model(chosen)
    if model.profile != profile or not _good_again(project, chosen):
        raise RefusedError(
            f"Model {chosen[:12]} is {model.state} for {model.profile}; expected a retired model of"
            f" {profile} whose latest evaluations pass.",
            hint="Choose another: `harness posttrain status`.",
            code="not_a_rollback_target",
        )
    return model


def serving_stack(history: list[Serving]) -> list[str]:
    """Models in the order of deployment; a rollback removes all that came after its target."""
    # Without the removal a second rollback would lead back to the model that the first one left.
    stack: list[str] = []
    for serving in history:
        if serving.model is None:
            continue
        if serving.how == "rollback" and serving.model in stack:
            stack = stack[: stack.index(serving.model) + 1]
        else:
            stack = [name for name in stack if name != serving.model] + [serving.model]
    return stack


def _good_again(project: Project, identifier: str) -> bool:
    history = project.ledger.model_history(identifier)
    # The last one of each subject: benchmark, mode and baseline.
    latest = {evaluation.subject: evaluation.verdict for evaluation in history.evaluations}
    retired = project.ledger.model(identifier).state is ModelState.RETIRED
    return retired and Verdict.FAIL.value not in latest.values()


def _served(project: Project, profile: str) -> str | None:
    history = project.ledger.servings(profile)
    return history[-1].model if history else None


def _retire(project: Project, profile: str, *, by: str, decision: Decision) -> None:
    for model in project.ledger.models():
        if model.profile == profile and model.state is ModelState.DEPLOYED:
            why = f"another is served: {decision.id}"
            project.ledger.append(
                _move(model, ModelState.RETIRED, why, by=by, decision=decision.id)
            )


def _move(
    model: Model,
    after: ModelState,
    why: str,
    *,
    by: str,
    decision: str | None,
    checks: list[dict[str, Any]] | None = None,
    evidence: dict[str, str] | None = None,
) -> ModelMoved:
    return ModelMoved(
        model=model.id,
        before=model.state.value,
        after=after.value,
        why=why,
        by=by,
        checks=checks or [],
        evidence=evidence or {},
        decision=decision,
    )


def _point(
    project: Project, model: Model, *, how: str, why: str, by: str, decision: Decision
) -> None:
    project.ledger.append(
        ModelServed(
            profile=model.profile,
            model=model.id,
            before=_served(project, model.profile),
            how=how,
            why=why,
            by=by,
            decision=decision.id,
        )
    )


def _decide(
    project: Project, model: Model, kind: DecisionKind, choice: str, *, by: str, reason: str
) -> Decision:
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
