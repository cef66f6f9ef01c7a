"""The held-out gate: a PASS on validation that still stands, and the same tier on rows nobody
trained for."""

from collections.abc import Iterator

from harness.domain.findings import Finding
from harness.domain.statuses import Verdict
from harness.gates import artifacts, linkage, scores, statistics
from harness.gates.evidence import GateEvidence, GateOutcome
from harness.gates.findings import finding
from harness.gates.validation import Check, conclude, frozen, ignored_seeds


def validation(evidence: GateEvidence) -> Iterator[Finding]:
    """The newest validation verdict is PASS, and nothing that it read has changed: claims, runs,
    scores, plan."""
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


CHECKS: tuple[Check, ...] = (
    validation,
    frozen,
    artifacts.seeds,
    artifacts.checkpoints,
    linkage.launches,
    ignored_seeds,
    scores.evaluations,
    scores.isolation,
    statistics.contamination,
    statistics.reference_seeds,
    statistics.generalisation,
    statistics.confirmed,
    scores.tier,
)


def judge(evidence: GateEvidence) -> GateOutcome:
    """Run every check; claims are held by the validation verdict, which must not be stale."""
    return conclude(evidence, CHECKS)
