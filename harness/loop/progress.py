"""Which experiments were improvements: by the noise floor and in the plan's direction, over the best before them."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.records import Objective
from harness.domain.statuses import Verdict
from harness.evaluation.noise_floor import compare, compare_to_baseline


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What one experiment brought on validation."""

    verdict: Verdict | None
    values: tuple[float, ...] = ()
    """One a seed."""
    baseline: float | None = None


def improvements(experiments: Sequence[Scored], objective: Objective) -> list[bool]:
    """One truth value an experiment, oldest first. What did not pass on validation is never an improvement and
    never becomes the best; the first that passed is measured against the trivial predictor."""
    best: tuple[float, ...] | None = None
    found = []
    for item in experiments:
        better = item.verdict is Verdict.PASS and bool(item.values) and _better(item, best, objective)
        found.append(better)
        if better or (best is None and item.verdict is Verdict.PASS and item.values):
            best = item.values
    return found


def _better(item: Scored, best: tuple[float, ...] | None, objective: Objective) -> bool:
    if best is not None:
        return compare(item.values, best, objective).better is True
    if item.baseline is None:
        return False
    return compare_to_baseline(item.values, item.baseline, objective).better is True
