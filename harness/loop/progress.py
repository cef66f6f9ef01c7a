"""Which experiments were improvements: by the noise floor and in the plan's direction, over the
best before them."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.records import Objective
from harness.domain.statuses import Verdict
from harness.evaluation.judgement import TRIVIAL
from harness.evaluation.noise_floor import compare, compare_to_baseline
from harness.gates.findings import FINDINGS


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What one experiment brought on validation."""

    verdict: Verdict | None
    findings: tuple[str, ...] = ()
    """The codes that the verdict names."""
    values: tuple[float, ...] = ()
    """One a seed."""
    baseline: float | None = None
    experiment: str = ""
    against: str | None = None
    """What the verdict compared it with: an experiment, or the trivial predictor; None without a
    comparison."""
    better: bool | None = None
    """What the verdict's comparison, by seeds, rows and number of tries, said."""

    @property
    def competes(self) -> bool:
        """Whether the contract was kept and every seed scored: a score below the least tier can be
        progress, one that was reached by breaking the contract cannot."""
        if not self.values or self.verdict not in (Verdict.PASS, Verdict.FAIL):
            return False
        blocking = {
            code
            for code in self.findings
            if code not in FINDINGS or FINDINGS[code].outcome is not Verdict.PASS
        }
        return self.verdict is Verdict.PASS or blocking == {"below_tier"}


def improvements(experiments: Sequence[Scored], objective: Objective) -> list[bool]:
    """One truth value an experiment, oldest first. What does not compete is never an improvement
    and never becomes the best; the first that competes is measured against the trivial predictor.
    Where a verdict compared an experiment with that same reference, its word counts: two answers to
    one question would contradict each other."""
    best: Scored | None = None
    found = []
    for item in experiments:
        better = item.competes and _better(item, best, objective)
        found.append(better)
        if better or (best is None and item.competes):
            best = item
    return found


def _better(item: Scored, best: Scored | None, objective: Objective) -> bool:
    if item.against is not None and item.against == (TRIVIAL if best is None else best.experiment):
        return item.better is True
    if best is not None:
        return compare(item.values, best.values, objective).better is True
    if item.baseline is None:
        return False
    return compare_to_baseline(item.values, item.baseline, objective).better is True
