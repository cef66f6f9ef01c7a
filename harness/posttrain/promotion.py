"""A model's way to be served, one step a decision: candidate, shadow, promotable, deployed,
retired. Every step is a person's; each re-reads all evidence inside the ledger's transaction, so
nothing can change between look and step."""

from dataclasses import asdict, dataclass

from harness.domain.models import ModelState
from harness.domain.program_facts import ModelMoved
from harness.domain.records import Decision
from harness.domain.statuses import DecisionKind
from harness.errors import RefusedError
from harness.ledger.project import Project
from harness.posttrain.checks import checks_for
from harness.posttrain.serving import decide, intact, point, retire, revocation
from harness.posttrain.thresholds import Check

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
    """The same as before when the step was refused."""
    checks: tuple[Check, ...]
    decision: Decision | None

    @property
    def moved(self) -> bool:
        return self.before is not self.after


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
                hint=(
                    "A retired one comes back by `harness posttrain rollback`; a rejected one never"
                    " does."
                ),
                code="no_next_step",
            )
        intact(project, model)
        checks, evidence = checks_for(project, model, project.ledger.model_history(model.id))
        if not all(check.passed for check in checks):
            return Promotion(
                model=model.id,
                before=model.state,
                after=model.state,
                checks=tuple(checks),
                decision=None,
            )
        decision = decide(
            project, model, DecisionKind.PROMOTE, f"{model.state} -> {after}", by=by, reason=reason
        )
        if after is ModelState.DEPLOYED:
            retire(project, model.profile, by=by, decision=decision)
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
            point(project, model, how="deploy", why=reason, by=by, decision=decision)
        return Promotion(
            model=model.id, before=model.state, after=after, checks=tuple(checks), decision=decision
        )


def reject_model(project: Project, identifier: str, *, by: str, reason: str) -> Decision:
    """For good: it is never served again; where it was, nothing is served."""
    with project.ledger.transaction() as writer:
        model = project.ledger.model(identifier)
        decision = decide(project, model, DecisionKind.REJECT, "rejected", by=by, reason=reason)
        for fact in revocation(
            project, model, ModelState.REJECTED, reason, by=by, decision=decision.id
        ):
            writer.append(fact)
        return decision
