"""The words of the harness's own decisions."""

from harness.domain.statuses import DecisionKind, GateName, spoken
from harness.loop.records import ExperimentState, VerdictState
from harness.loop.steps import Decide


def keep(experiment: ExperimentState, verdict: VerdictState) -> Decide:
    """KEEP on a held-out PASS that is better than the parent beyond the noise floor."""
    return Decide(
        experiment=experiment.id,
        kind=DecisionKind.KEEP,
        verdict=verdict.id,
        context=f"{experiment.id} passed on validation and on held-out.",
        choice=f"Keep {experiment.id}; further experiments are compared with it.",
        alternatives="Discard it, or train it with more seeds.",
        reason=f"It reaches the tier {verdict.tier} and is better: {verdict.why}",
        confidence="high",
    )


def keep_for_person(experiment: ExperimentState, verdict: VerdictState) -> Decide:
    """KEEP because a person approved it or overrode the gate."""
    return Decide(
        experiment=experiment.id,
        kind=DecisionKind.KEEP,
        verdict=verdict.id,
        context=f"The newest verdict on {experiment.id} is {verdict.verdict} ({verdict.id}).",
        choice=f"Keep {experiment.id}; further experiments are compared with it.",
        alternatives="A person may reject it (`harness gate reject`).",
        reason=f"A person decided it: {experiment.decided}.",
        confidence="high",
    )


def discard(
    experiment: ExperimentState, verdict: VerdictState, gate: GateName, why: str | None = None
) -> Decide:
    """DISCARD on a verdict that is not PASS, or for the reason `why`."""
    words = "; ".join(found.message for found in verdict.findings)
    return Decide(
        experiment=experiment.id,
        kind=DecisionKind.DISCARD,
        verdict=verdict.id,
        context=f"The {spoken(gate)} gate said {verdict.verdict} for {experiment.id}.",
        choice=f"Discard {experiment.id} and try another hypothesis.",
        alternatives="Train it again, or let a person keep it (`harness gate approve --override`).",
        reason=why if why is not None else words,
        confidence="high" if why is None else "medium",
    )
