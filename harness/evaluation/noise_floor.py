"""Is one score better than another by more than the seeds' noise?

floor = t(0.975, k1 + k2 - 2) * s_pooled * sqrt(1/k1 + 1/k2), the half width of the 95% interval of
a difference of two means with a common variance. Against the trivial predictor's score, a fixed
number, the one-sample form: t(0.975, k - 1) * s * sqrt(1/k).

Where both have the same seeds, what a seed does to both is no noise of their difference: the spread
of the differences, seed by seed, has t(0.975, k - 1) * s_d * sqrt(1/k). With the same weights (only
predict differs) that is the test. With other weights nobody knows before whether a seed does the
same to both, and to choose by what was seen would find too much: both tests are made, and share the
level, POOLED of it and the rest (Bonferroni).

Where no paired test over rows is made beside this one (a script's score), `row_noise`, the half
width of the difference's 95% interval over rows, counts here: the floor is the larger of both, p
the larger p.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean, stdev

from harness.domain.distributions import normal_cdf, t_cdf, t_quantile
from harness.domain.records import LEAST_SEEDS, Objective
from harness.evaluation.intervals import NORMAL
from harness.evaluation.outcome import LEVEL, FloorOf, Inconclusive, Worth

POOLED = 0.8
"""The share of the level that the test without pairs has where seeds are shared: with 3 seeds its
floor grows by 8%, and pairs win where their correlation is above 0.91 (10 seeds: 0.54)."""
_ROUNDING = 1e-12
"""Relative: a difference below it is the arithmetic's, not the models'."""


class Pairing(StrEnum):
    """What two experiments have in common, seed by seed."""

    NONE = "none"
    SEEDS = "seeds"
    WEIGHTS = "weights"


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
class _Test:
    """Student's t of a difference with the standard error `error`."""

    error: float
    degrees: int
    share: float = 1.0
    """Of the level."""
    floor_of: FloorOf = FloorOf.SEEDS

    @property
    def floor(self) -> float:
        tail = LEVEL * self.share / 2
        return t_quantile(self.degrees, 1 - tail) * self.error

    def p(self, gain: float) -> float:
        p = 2 * t_cdf(self.degrees, -gain / self.error)
        return min(1.0, p / self.share)


@dataclass(frozen=True, kw_only=True)
class _Seeds:
    """Scores, one a seed, and the tests of their difference, of which the most certain counts."""

    candidate: Sequence[float]
    reference: Sequence[float]
    tests: Sequence[_Test]


def compare(
    candidate: Sequence[float],
    reference: Sequence[float],
    objective: Objective,
    *,
    row_noise: float = 0.0,
    paired: bool = False,
    pairing: Pairing = Pairing.NONE,
) -> SeedComparison:
    """Compare two experiments by their scores, one a seed. Raises ValueError.

    `row_noise`: in the metric's unit; `paired`: a test over the same rows is made beside this one;
    `pairing`: where it is not NONE, the scores stand in the order of the same seeds.
    """
    difference = _mean(candidate, "candidate") - _mean(reference, "reference")
    if min(len(candidate), len(reference)) < LEAST_SEEDS:
        return _inconclusive(difference, Inconclusive.TOO_FEW_SEEDS)
    # A mean of few seeds varies more, so it is the easier one to beat.
    if len(reference) < len(candidate):
        return _inconclusive(difference, Inconclusive.REFERENCE_HAS_FEWER_SEEDS)
    tests = _tests(candidate, reference, pairing)
    seeds = _Seeds(candidate=candidate, reference=reference, tests=tests)
    return _judge(seeds, objective, row_noise, paired)


def _tests(
    candidate: Sequence[float], reference: Sequence[float], pairing: Pairing
) -> list[_Test]:
    k1, k2 = len(candidate), len(reference)
    squares = (k1 - 1) * stdev(candidate) ** 2 + (k2 - 1) * stdev(reference) ** 2
    error = math.sqrt(squares / (k1 + k2 - 2)) * math.sqrt(1 / k1 + 1 / k2)
    # The seeds of deterministic training tell nothing about a spread.
    telling = [group for group in (candidate, reference) if stdev(group) > 0]
    degrees = sum(len(group) - 1 for group in telling or (candidate, reference))
    pooled = _Test(error=error, degrees=degrees)
    if pairing is Pairing.NONE:
        return [pooled]
    apart = [one - other for one, other in zip(candidate, reference, strict=True)]
    pairs = _Test(error=stdev(apart) / math.sqrt(k1), degrees=k1 - 1, floor_of=FloorOf.PAIRS)
    if pairing is Pairing.WEIGHTS:
        return [pairs]
    return [replace(pooled, share=POOLED), replace(pairs, share=1 - POOLED)]


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
    test = _Test(error=stdev(candidate) * math.sqrt(1 / k), degrees=k - 1)
    seeds = _Seeds(candidate=candidate, reference=[baseline], tests=[test])
    return _judge(seeds, objective, row_noise, paired)


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
    surest = min(seeds.tests, key=lambda test: test.floor)
    still = surest.floor <= rounding
    # Where a paired test is made, the rows' noise counts there. It stands in here only when all
    # seeds score the same (deterministic training, or a seed that is not used): a floor of 0 would
    # make every difference a success.
    by_rows = row_noise > rounding and (still or not paired)
    p, floor = _p(abs(gain), seeds.tests, rounding), surest.floor
    floor_of = surest.floor_of
    if by_rows:
        p = max(p, _p_of_rows(abs(gain), row_noise, rounding))
    if by_rows and row_noise > floor:
        floor, floor_of = row_noise, FloorOf.ROWS_ALONE if still else FloorOf.ROWS
    outcome = Worth.WITHIN
    if abs(gain) > max(floor, rounding):
        outcome = Worth.BETTER if gain > 0 else Worth.WORSE
    return SeedComparison(
        difference=mine - theirs, floor=floor, floor_of=floor_of, outcome=outcome, p=p
    )


def _p(gain: float, tests: Sequence[_Test], rounding: float) -> float:
    """The two-sided p-value of a difference."""
    if gain <= rounding:
        return 1.0
    if any(test.floor <= rounding for test in tests):
        return 0.0
    return min(test.p(gain) for test in tests)


def _p_of_rows(gain: float, half_width: float, rounding: float) -> float:
    """By the normal distribution, which the rows' intervals approach."""
    return 1.0 if gain <= rounding else 2 * normal_cdf(-gain / half_width * NORMAL)
