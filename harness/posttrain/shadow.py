"""A model in shadow answers beside the deployed one, and its answers are not used: what became of
each is recorded, and asked before the next step."""

from harness.clock import parse_iso
from harness.domain.models import Model, ModelHistory, ModelState
from harness.domain.program_facts import ShadowObserved
from harness.errors import RefusedError, UsageError
from harness.ledger.project import Project
from harness.posttrain.thresholds import Check, Thresholds

REJECTED_BY_ARBITER = "rejected"
NOT_EXECUTED = frozenset({"timed_out", "failed", "invalid_output"})
OUTCOMES = ("accepted", REJECTED_BY_ARBITER, *sorted(NOT_EXECUTED))


def observe(
    project: Project, identifier: str, outcome: str, *, by: str, note: str = ""
) -> ShadowObserved:
    """Record one shadow answer. Raises UsageError for an unknown outcome: it counts as nothing,
    least of all as accepted; RefusedError when the model is not in shadow."""
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


def shadow_checks(
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
    checks = [
        Check(
            constraint="shadow observations",
            actual=count,
            threshold=thresholds.observations,
            passed=count >= thresholds.observations,
        ),
        Check(
            constraint="shadow seconds",
            actual=passed,
            threshold=thresholds.shadow_seconds,
            passed=passed >= thresholds.shadow_seconds,
        ),
        Check(
            constraint="arbiter rejection",
            actual=arbiter,
            threshold=thresholds.arbiter_rejection,
            passed=arbiter <= thresholds.arbiter_rejection,
        ),
        Check(
            constraint="execution rejection",
            actual=broken,
            threshold=thresholds.execution_rejection,
            passed=broken <= thresholds.execution_rejection,
        ),
    ]
    return checks, {f"observation {place}": item.hash for place, item in enumerate(seen, 1)}
