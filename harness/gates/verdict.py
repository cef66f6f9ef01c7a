"""The gates: the checks of each, and the verdict of their findings.

Validation: the experiment kept its contract, and its recomputed score reaches the plan's tier.
Held-out: that PASS still stands, and the score reaches the tier on rows that nobody trained for.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from harness.domain.findings import Finding
from harness.domain.statuses import GateName, Verdict
from harness.gates import alarms, artifacts, scores
from harness.gates.evidence import GateEvidence, GateOutcome
from harness.gates.findings import finding, outcome_of

_EXPERIMENT = re.compile(r"\bEXP\b")
Check = Callable[[GateEvidence], Iterable[Finding]]


def frozen(evidence: GateEvidence) -> Iterator[Finding]:
    """Plan, scorer and splits are as approved, control files as accepted, records untouched."""
    yield from evidence.frozen_changes
    yield from evidence.tampering
    yield from evidence.control_changes


def ignored_seeds(evidence: GateEvidence) -> Iterator[Finding]:
    """No two seeds gave the same weights."""
    yield from evidence.ignored_seeds


def validated(evidence: GateEvidence) -> Iterator[Finding]:
    """The newest validation verdict is PASS, and nothing that it read has changed."""
    reference = evidence.validation
    if reference is None or reference.verdict is None:
        yield finding(
            "validation_not_passed", f"{evidence.experiment.id} has no verdict on validation."
        )
        return
    if reference.verdict.verdict is not Verdict.PASS:
        yield finding(
            "validation_not_passed",
            f"{evidence.experiment.id} is {reference.verdict.verdict} on validation"
            f" ({reference.verdict.id}).",
        )
    if reference.changed:
        yield finding(
            "validation_stale",
            f"Changed since {reference.verdict.id}: {', '.join(reference.changed)}.",
            changed=list(reference.changed),
        )


VALIDATION: tuple[Check, ...] = (
    artifacts.bypass,
    frozen,
    artifacts.seeds,
    artifacts.supervisor_findings,
    artifacts.files,
    artifacts.run_files,
    artifacts.row_times,
    artifacts.checkpoints,
    artifacts.cadence,
    artifacts.launches,
    alarms.undiagnosed,
    ignored_seeds,
    scores.evaluations,
    scores.isolation,
    scores.contamination,
    scores.reference_seeds,
    scores.claims,
    scores.prose,
    scores.tier,
)

HELD_OUT: tuple[Check, ...] = (
    validated,
    frozen,
    artifacts.seeds,
    artifacts.checkpoints,
    artifacts.launches,
    ignored_seeds,
    scores.evaluations,
    scores.isolation,
    scores.contamination,
    scores.reference_seeds,
    scores.generalisation,
    scores.confirmed,
    scores.tier,
)

GATES: dict[GateName, tuple[Check, ...]] = {
    GateName.VALIDATION: VALIDATION,
    GateName.HELD_OUT: HELD_OUT,
}
# Held-out does not check claims and artifacts again: the validation verdict read them, and it must
# not be stale.


def judge(evidence: GateEvidence) -> GateOutcome:
    """Run every check of the evidence's gate, so that the outcome lists all that is wrong."""
    return conclude(evidence, GATES[evidence.gate])


def conclude(evidence: GateEvidence, checks: Sequence[Check]) -> GateOutcome:
    """The verdict of `checks`: FAIL before INCONCLUSIVE before PASS."""
    findings = tuple(
        _named(finding, evidence.experiment.id) for check in checks for finding in check(evidence)
    )
    outcomes = {outcome_of(finding) for finding in findings}
    verdict = next(
        (outcome for outcome in (Verdict.FAIL, Verdict.INCONCLUSIVE) if outcome in outcomes),
        Verdict.PASS,
    )
    return GateOutcome(
        verdict=verdict,
        findings=findings,
        score=evidence.score,
        tier=scores.reached_tier(evidence),
        comparison=evidence.comparison,
    )


def _named(finding: Finding, experiment: str) -> Finding:
    """The finding with a hint that can be typed as it is."""
    return replace(finding, hint=_EXPERIMENT.sub(experiment, finding.hint))
