"""Is one score better than another by more than the seeds' noise?

floor = t(0.975, k1 + k2 - 2) * s_pooled * sqrt(1/k1 + 1/k2), the half width of the 95% interval of
a difference of two means with a common variance. Against the trivial predictor's score, a fixed
number, the one-sample form: t(0.975, k - 1) * s * sqrt(1/k).

Where no paired test over rows is made beside this one (a script's score), `row_noise`, the half
width of the difference's 95% interval over rows, counts here: the floor is the larger of both, p
the larger p.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

# Only `scipy`: scipy.special is loaded at its first use, else every command would wait for it.
import scipy

from harness.domain.records import LEAST_SEEDS, Objective
from harness.evaluation.outcome import FloorOf, Inconclusive, Worth

_NORMAL = 1.959963984540054
"""The 97.5% quantile."""
_ROUNDING = 1e-12
"""Relative: a difference below it is the arithmetic's, not the models'."""


@dataclass(frozen=True, kw_only=True)
class SeedComparison:
    difference: float
    """Candidate minus reference, in the metric's unit, whatever the direction."""
    floor: float | None
    """A difference within it is noise; None when there are too few seeds to know it."""
    floor_of: FloorOf = FloorOf.SEEDS
    outcome: Worth = Worth.UNKNOWN
    """Against the floor, in the plan's direction."""
    inconclusive: Inconclusive | None = None
    p: float | None = None
    """Two-sided, of the same test: below 0.05 beyond the floor."""

    @property
    def better(self) -> bool | None:
        """Better in the plan's direction and beyond the floor; None when it cannot be said."""
        return None if self.inconclusive else self.outcome is Worth.BETTER


@dataclass(frozen=True, kw_only=True)
class _Seeds:
    """Scores, one a seed, and the 95% half width of their difference by Student's t with
    `degrees`."""

    candidate: Sequence[float]
    reference: Sequence[float]
    floor: float
    degrees: int


def compare(
    candidate: Sequence[float],
    reference: Sequence[float],
    objective: Objective,
    *,
    row_noise: float = 0.0,
    paired: bool = False,
) -> SeedComparison:
    """Compare two experiments by their scores, one a seed. Raises ValueError.

    `row_noise`: in the metric's unit; `paired`: a test over the same rows is made beside this one.
    """
    difference = _mean(candidate, "candidate") - _mean(reference, "reference")
    if min(len(candidate), len(reference)) < LEAST_SEEDS:
        return _inconclusive(difference, Inconclusive.TOO_FEW_SEEDS)
    # A mean of few seeds varies more, so it is the easier one to beat.
    if len(reference) < len(candidate):
        return _inconclusive(difference, Inconclusive.REFERENCE_HAS_FEWER_SEEDS)
    degrees = len(candidate) + len(reference) - 2
    seeds = _Seeds(
        candidate=candidate,
        reference=reference,
        floor=noise_floor(candidate, reference),
        degrees=degrees,
    )
    return _judge(seeds, objective, row_noise, paired)


def compare_to_baseline(
    candidate: Sequence[float],
    baseline: float,
    objective: Objective,
    *,
    row_noise: float = 0.0,
    paired: bool = False,
) -> SeedComparison:
    """Compare an experiment without a parent with the trivial predictor's score."""
    difference = _mean(candidate, "candidate") - _mean([baseline], "baseline")
    if len(candidate) < LEAST_SEEDS:
        return _inconclusive(difference, Inconclusive.TOO_FEW_SEEDS)
    k = len(candidate)
    floor = _quantile(k - 1) * stdev(candidate) * math.sqrt(1 / k)
    seeds = _Seeds(candidate=candidate, reference=[baseline], floor=floor, degrees=k - 1)
    return _judge(seeds, objective, row_noise, paired)


def noise_floor(candidate: Sequence[float], reference: Sequence[float]) -> float:
    """The floor for two groups of at least two scores each; 0 when neither has any spread."""
    k1, k2 = len(candidate), len(reference)
    squares = (k1 - 1) * stdev(candidate) ** 2 + (k2 - 1) * stdev(reference) ** 2
    return _quantile(k1 + k2 - 2) * math.sqrt(squares / (k1 + k2 - 2)) * math.sqrt(1 / k1 + 1 / k2)


def _quantile(degrees: int) -> float:
    return float(scipy.special.stdtrit(degrees, 0.975))


def _mean(values: Sequence[float], which: str) -> float:
    if not values or not all(math.isfinite(value) for value in values):
        raise ValueError(
            f"the {which} has the scores {list(values)}; expected at least one, all finite"
        )
    return fmean(values)


def _inconclusive(difference: float, reason: Inconclusive) -> SeedComparison:
    return SeedComparison(difference=difference, floor=None, inconclusive=reason)


def _judge(seeds: _Seeds, objective: Objective, row_noise: float, paired: bool) -> SeedComparison:
    mine, theirs = fmean(seeds.candidate), fmean(seeds.reference)
    gain, rounding = objective.gain(mine, theirs), _ROUNDING * max(abs(mine), abs(theirs))
    still = seeds.floor <= rounding
    # Where a paired test is made, the rows' noise counts there. It stands in here only when all
    # seeds score the same (deterministic training, or a seed that is not used): a floor of 0 would
    # make every difference a success.
    by_rows = row_noise > rounding and (still or not paired)
    p = _p(abs(gain), seeds.floor, rounding, seeds.degrees)
    if by_rows:
        p = max(p, _p(abs(gain), row_noise, rounding, None))
    floor = max(seeds.floor, row_noise) if by_rows else seeds.floor
    floor_of = FloorOf.SEEDS
    if floor > seeds.floor:
        floor_of = FloorOf.ROWS_ALONE if still else FloorOf.ROWS
    outcome = Worth.WITHIN
    if abs(gain) > max(floor, rounding):
        outcome = Worth.BETTER if gain > 0 else Worth.WORSE
    return SeedComparison(
        difference=mine - theirs, floor=floor, floor_of=floor_of, outcome=outcome, p=p
    )


def _p(gain: float, floor: float, rounding: float, degrees: int | None) -> float:
    """The two-sided p-value of a difference whose 95% half width is `floor`: by Student's t, or,
    with `degrees` None, by the normal distribution, which the rows' intervals approach."""
    if gain <= rounding:
        return 1.0
    if floor <= rounding:
        return 0.0
    if degrees is None:
        return 2 * float(scipy.special.ndtr(-gain / floor * _NORMAL))
    return 2 * float(scipy.special.stdtr(degrees, -gain / floor * _quantile(degrees)))
