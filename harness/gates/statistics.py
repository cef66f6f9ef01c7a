"""Checks of what the numbers rest on: clean training rows, and a reference that was measured as well."""

from collections.abc import Iterator

from harness.domain.findings import Finding
from harness.domain.statuses import spoken
from harness.gates.evidence import GateEvidence
from harness.gates.findings import finding

MOST_SHARED = 0.05
"""Of a split's rows: up to so many copies in the training rows are told at approval and block nothing. In CIFAR-10 3.3%
and in CIFAR-100 10% of the test images have duplicates in training (Barz and Denzler 2020): docs/statistics.md."""
USUAL = 2.0
"""Data of few distinct rows repeats by itself: the share must also be above this multiple of the training rows that
have a twin among themselves."""


def contamination(evidence: GateEvidence) -> Iterator[Finding]:
    """The training rows hold no larger a part of the split than data of their kind repeats; as it was at approval."""
    shared = evidence.in_train
    if shared is None or shared["share"] <= max(MOST_SHARED, USUAL * shared["repeats"]):
        return
    limit = f"at most {MOST_SHARED:.0%} may, or {USUAL:g} times the {shared['repeats']:.1%} that repeat in training"
    yield finding(
        "split_contaminated",
        f"{shared['rows']:g} rows of {spoken(evidence.gate)} ({shared['share']:.1%}) have a training row's inputs; "
        f"{limit}.",
        share=shared["share"],
        repeats=shared["repeats"],
    )


def reference_seeds(evidence: GateEvidence) -> Iterator[Finding]:
    """The experiment that it is compared with has as many scored seeds; the trivial predictor needs none."""
    comparison = evidence.comparison or {}
    own, other = comparison.get("seeds", (0, None))
    if other is None or other >= own:
        return
    parent = comparison["against"]
    yield finding(
        "reference_seeds_fewer",
        f"{evidence.experiment.id} has {own} scored seeds on validation, its parent {parent} has {other}.",
        f"Run `harness evaluate {parent}` if its seeds are trained; else open an experiment that repeats {parent} with "
        "the plan's seeds, and one with that as its parent.",
        parent=parent,
        seeds=own,
        parent_seeds=other,
    )
