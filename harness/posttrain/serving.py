"""What is served: a pointer for each profile, moved by deployment, rollback, rejection and
revocation."""

from pathlib import Path

from harness.artifacts.content import hash_path
from harness.domain.models import Model, ModelState, Serving
from harness.domain.program_facts import ModelMoved, ModelServed
from harness.domain.records import Decision
from harness.domain.statuses import DecisionKind, Verdict
from harness.errors import HarnessError, NotFoundError, RefusedError
from harness.ledger.project import Project


def serve_path(project: Project, profile: str) -> Path:
    """Where the deployed model of `profile` lies, its bytes checked. Raises NotFoundError
    (nothing_served) or RefusedError (model_changed)."""
    history = project.ledger.servings(profile)
    served = history[-1].model if history else None
    model = project.ledger.model(served) if served is not None else None
    if model is None or model.state is not ModelState.DEPLOYED:
        raise NotFoundError(
            f"No model is deployed for {profile}.",
            hint="Promote one, or `harness posttrain rollback`.",
            code="nothing_served",
        )
    return intact(project, model)


def intact(project: Project, model: Model) -> Path:
    """The model's folder, re-hashed. Raises RefusedError (model_changed) when it is not what was
    registered."""
    path = project.layout.root / model.path
    try:
        now = hash_path(path)
    except HarnessError as error:
        now = error.message
    if now != model.id:
        raise RefusedError(
            f"{path} is not model {model.id[:12]} any more: {now[:80]}.",
            hint="Restore it, or train again: a model is its bytes.",
            code="model_changed",
        )
    return path


def rollback(
    project: Project, profile: str, *, by: str, reason: str, to: str | None = None
) -> Serving:
    """Serve an earlier good model again: `to`, or the one that was served before the present one.
    What is rolled back from is not a target of later rollbacks: they go further back.

    Raises NotFoundError (nothing_to_roll_back_to), RefusedError when `to` is not retired or its
    latest evaluation failed.
    """
    with project.ledger.transaction() as writer:
        model = _target(project, profile, to)
        intact(project, model)
        decision = decide(
            project, model, DecisionKind.ROLLBACK, f"serve {model.id[:12]}", by=by, reason=reason
        )
        retire(project, profile, by=by, decision=decision)
        writer.append(
            ModelMoved(
                model=model.id,
                before=model.state.value,
                after=ModelState.DEPLOYED.value,
                why=reason,
                by=by,
                checks=[],
                evidence={"model": model.id},
                decision=decision.id,
            )
        )
        point(project, model, how="rollback", why=reason, by=by, decision=decision)
        return project.ledger.servings(profile)[-1]


def _target(project: Project, profile: str, to: str | None) -> Model:
    history = project.ledger.servings(profile)
    current = history[-1].model if history else None
    earlier = [
        name for name in serving_stack(history) if name != current and good_again(project, name)
    ]
    chosen = project.ledger.model(to).id if to is not None else (earlier[-1] if earlier else None)
    if chosen is None:
        raise NotFoundError(
            f"No earlier good model was served for {profile}.",
            hint="`harness posttrain status` lists the models.",
            code="nothing_to_roll_back_to",
        )
    model = project.ledger.model(chosen)
    if model.profile != profile or not good_again(project, chosen):
        raise RefusedError(
            f"Model {chosen[:12]} is {model.state} for {model.profile}; a rollback leads to a"
            " retired one whose evaluations still pass.",
            hint="Choose another: `harness posttrain status`.",
            code="not_a_rollback_target",
        )
    return model


def serving_stack(history: list[Serving]) -> list[str]:
    """Models by the order in which they were deployed; a rollback takes off all that came after its
    target."""
    stack: list[str] = []
    for item in history:
        if item.model is None:
            continue
        if item.how == "rollback" and item.model in stack:
            stack = stack[: stack.index(item.model) + 1]
        else:
            stack = [name for name in stack if name != item.model] + [item.model]
    return stack


def good_again(project: Project, identifier: str) -> bool:
    history = project.ledger.model_history(identifier)
    latest = {item.subject: item.verdict for item in history.evaluations}
    retired = project.ledger.model(identifier).state is ModelState.RETIRED
    return retired and Verdict.FAIL.value not in latest.values()


def revocation(
    project: Project,
    model: Model,
    after: ModelState,
    why: str,
    *,
    by: str,
    decision: str | None = None,
) -> list[ModelMoved | ModelServed]:
    """The facts that take a model out of service: it is moved, and the pointer is cleared where it
    led to it."""
    served = project.ledger.servings(model.profile)
    facts: list[ModelMoved | ModelServed] = [
        ModelMoved(
            model=model.id,
            before=model.state.value,
            after=after.value,
            why=why,
            by=by,
            checks=[],
            evidence={},
            decision=decision,
        )
    ]
    if served and served[-1].model == model.id:
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


def retire(project: Project, profile: str, *, by: str, decision: Decision) -> None:
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


def point(
    project: Project, model: Model, *, how: str, why: str, by: str, decision: Decision
) -> None:
    history = project.ledger.servings(model.profile)
    before = history[-1].model if history else None
    project.ledger.append(
        ModelServed(
            profile=model.profile,
            model=model.id,
            before=before,
            how=how,
            why=why,
            by=by,
            decision=decision.id,
        )
    )


def decide(
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
