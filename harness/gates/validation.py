"""The validation gate: did the experiment keep its contract, and does its recomputed score reach
the plan's tier?"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from harness.domain.findings import Finding
from harness.domain.statuses import Verdict
from harness.gates import alarms, artifacts, linkage, scores, statistics
from harness.gates.evidence import GateEvidence, GateOutcome
from harness.gates.findings import outcome_of

_EXPERIMENT = re.compile(r"\bEXP\b")
Check = Callable[[GateEvidence], Iterable[Finding]]


def frozen(evidence: GateEvidence) -> Iterator[Finding]:
    """Plan, scorer and splits are those that were approved, control files those that were accepted,
    and nothing recorded was touched."""
    yield from evidence.frozen_changes
    yield from evidence.tampering
    yield from evidence.control_changes


def ignored_seeds(evidence: GateEvidence) -> Iterator[Finding]:
    """No two seeds gave the same weights."""
    yield from evidence.ignored_seeds


CHECKS: tuple[Check, ...] = (
    artifacts.bypass,
    frozen,
    artifacts.seeds,
    artifacts.told,
    artifacts.files,
    artifacts.run_files,
    linkage.row_times,
    artifacts.checkpoints,
    artifacts.cadence,
    linkage.launches,
    alarms.undiagnosed,
    ignored_seeds,
    scores.evaluations,
    scores.isolation,
    statistics.contamination,
    statistics.reference_seeds,
    scores.claims,
    scores.prose,
    scores.tier,
)


def judge(evidence: GateEvidence) -> GateOutcome:
    """Run every check; the outcome lists all that is missing or failing, in the order of CHECKS."""
    return conclude(evidence, CHECKS)


def conclude(evidence: GateEvidence, checks: Sequence[Check]) -> GateOutcome:
    """The verdict of `checks`: FAIL before INCONCLUSIVE before PASS."""
    found = (_named(item, evidence.experiment.id) for check in checks for item in check(evidence))
    findings = tuple(found)
    outcomes = {outcome_of(found) for found in findings}
    verdict = next(
        (item for item in (Verdict.FAIL, Verdict.INCONCLUSIVE) if item in outcomes), Verdict.PASS
    )
    return GateOutcome(
        verdict=verdict,
        findings=findings,
        score=evidence.score,
        tier=scores.reached_tier(evidence),
        comparison=evidence.comparison,
    )


def _named(found: Finding, experiment: str) -> Finding:
    """The finding with a fix that can be typed as it is."""
    return replace(found, hint=_EXPERIMENT.sub(experiment, found.hint))
