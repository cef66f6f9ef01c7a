"""Is one score better than another by more than the seeds' noise?

For k >= 3 seeds each: floor = t(0.975, 2k - 2) * s_pooled * sqrt(2 / k), the half width of the 95% interval of a
difference of two means with a common variance; for unequal numbers t(0.975, k1 + k2 - 2) * s_pooled *
sqrt(1/k1 + 1/k2), the same formula when they are equal. Against one fixed number, the trivial predictor's score,
which has no spread of its own, the one-sample form: t(0.975, k - 1) * s * sqrt(1 / k).

Seeds that all score the same (deterministic training, or a seed that only pretends to be used) would make the floor 0
and every changed row a success. Then `row_noise`, the half width of the scores' own 95% intervals over rows, stands in.

An experiment is compared with one that has at least as many seeds: a mean of few is the easier one to beat.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import scipy  # its submodules are imported at their first use: the start of every verb would wait for scipy.special

from harness.domain.records import LEAST_SEEDS, Objective

_NORMAL = 1.959963984540054
"""The 97.5% quantile."""
_ROUNDING = 1e-12
"""Relative: a difference below it is the arithmetic's, not the models'."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    difference: float
    """Candidate minus reference, in the metric's unit, whatever the direction."""
    floor: float | None
    """A difference within it is noise; None when there are too few seeds to know it."""
    better: bool | None
    """Better in the plan's direction and beyond the floor; None when it cannot be said."""
    why: str
    p: float | None = None
    """Two-sided, of the same test: below 0.05 beyond the floor."""


def compare(
    candidate: Sequence[float], reference: Sequence[float], objective: Objective, *, row_noise: float = 0.0
) -> Comparison:
    """Compare two experiments by their scores, one a seed, both non-empty and finite. Raises ValueError."""
    difference = _mean(candidate, "candidate") - _mean(reference, "reference")
    if min(len(candidate), len(reference)) < LEAST_SEEDS:
        return _too_few(difference, f"{len(candidate)} against {len(reference)} seeds")
    if len(reference) < len(candidate):
        why = f"Inconclusive: {len(candidate)} seeds against {len(reference)} of the reference, which needs as many."
        return Comparison(difference=difference, floor=None, better=None, why=why)
    degrees = len(candidate) + len(reference) - 2
    return _judge(difference, noise_floor(candidate, reference), degrees, candidate, reference, objective, row_noise)


def compare_to_baseline(
    candidate: Sequence[float], baseline: float, objective: Objective, *, row_noise: float = 0.0
) -> Comparison:
    """Compare an experiment without a parent with the trivial predictor's score, by the candidate's own spread."""
    difference = _mean(candidate, "candidate") - _mean([baseline], "baseline")
    if len(candidate) < LEAST_SEEDS:
        return _too_few(difference, f"{len(candidate)} seeds against the trivial predictor")
    k = len(candidate)
    floor = _quantile(k - 1) * stdev(candidate) * math.sqrt(1 / k)
    return _judge(difference, floor, k - 1, candidate, [baseline], objective, row_noise)


def noise_floor(candidate: Sequence[float], reference: Sequence[float]) -> float:
    """The floor for two groups of at least two scores each; 0 when neither has any spread."""
    k1, k2 = len(candidate), len(reference)
    squares = (k1 - 1) * stdev(candidate) ** 2 + (k2 - 1) * stdev(reference) ** 2
    return _quantile(k1 + k2 - 2) * math.sqrt(squares / (k1 + k2 - 2)) * math.sqrt(1 / k1 + 1 / k2)


def _quantile(degrees: int) -> float:
    return float(scipy.special.stdtrit(degrees, 0.975))


def _mean(values: Sequence[float], which: str) -> float:
    if not values or not all(math.isfinite(value) for value in values):
        raise ValueError(f"the {which} has the scores {list(values)}; expected at least one, all finite")
    return fmean(values)


def _too_few(difference: float, which: str) -> Comparison:
    why = f"Inconclusive: {which}; {LEAST_SEEDS} seeds each are needed to know the noise."
    return Comparison(difference=difference, floor=None, better=None, why=why)


def _judge(
    difference: float,
    floor: float,
    degrees: int,
    candidate: Sequence[float],
    reference: Sequence[float],
    objective: Objective,
    row_noise: float,
) -> Comparison:
    gain = objective.gain(fmean(candidate), fmean(reference))
    rounding = _ROUNDING * max(abs(fmean(candidate)), abs(fmean(reference)))
    still = floor <= rounding
    floor = max(floor, row_noise) if still else floor
    if gain > max(floor, rounding):
        better, words = True, "better by more than the noise"
    elif gain < -max(floor, rounding):
        better, words = False, "worse by more than the noise"
    else:
        better, words = False, "within the noise"
    of_what = " of the rows, since the seeds do not differ," if still and row_noise else ""
    why = f"{difference:+.4g} against a noise floor{of_what} of {floor:.4g} ({objective.direction}): {words}."
    p = _p(abs(gain), floor, rounding, None if still else degrees)
    return Comparison(difference=difference, floor=floor, better=better, why=why, p=p)


def _p(gain: float, floor: float, rounding: float, degrees: int | None) -> float:
    """The two-sided p-value of a difference whose 95% half width is `floor`: by Student's t, or, with `degrees` None,
    by the normal distribution, which the rows' intervals approach."""
    if gain <= rounding:
        return 1.0
    if floor <= rounding:
        return 0.0
    if degrees is None:
        return 2 * float(scipy.special.ndtr(-gain / floor * _NORMAL))
    return 2 * float(scipy.special.stdtr(degrees, -gain / floor * _quantile(degrees)))
