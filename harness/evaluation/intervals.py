"""The 95% interval of a score over rows, or over whole groups of rows.

- A proportion (accuracy) and what is built like one (F1, areas, correlations of classes or ranks):
  Wilson's score interval ("Probable inference", 1927). It has a width at both ends too.
- A mean of unbounded losses: Student's t after Hall's correction for skewness ("On the removal of
  skewness by transformation", 1992). Losses have long tails, which the percentile bootstrap misses.
- A script's score, and a median: the percentiles of the scores of resampled rows.

A unit is what is independent of the rest: a row, or a group with all its rows. What the units
contribute adds up to the error of the mean by the linearized ratio estimator (Cochran, "Sampling
techniques", 1977, ch. 6): groups may have different sizes.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness.domain.distributions import t_quantile

COVERAGE = 0.95
NORMAL = 1.959963984540054
"""The 97.5% quantile."""
_MOST_SKEW = 10.0
"""Of the units, beyond which the correction is held: it is estimated from few of them."""

Interval = tuple[float, float]
Rows = NDArray[np.float64]
Groups = NDArray[np.int64]


def unit_sums(rows: Rows, groups: Groups | None) -> Rows:
    """What each unit adds to the sum of the rows, shape (units,)."""
    if groups is None:
        return rows
    sums: Rows = np.bincount(groups, weights=rows)[np.unique(groups)].astype(np.float64)
    return sums


def mean_error(rows: Rows, groups: Groups | None = None) -> float:
    """The standard error of the mean of rows, shape (n,); 0 for one unit, of which nothing can be
    known."""
    apart = unit_sums(rows - rows.mean(), groups)
    units = len(apart)
    if units < 2:
        return 0.0
    return math.sqrt(units / (units - 1) * float(apart @ apart)) / len(rows)


def mean_interval(
    contributions: Sequence[float] | Rows, groups: Groups | None = None
) -> Interval | None:
    """Of the mean of `contributions`, shape (n,), n >= 1, finite. None for a single unit: one
    observation has no spread."""
    rows = _checked(contributions)
    apart = unit_sums(rows - rows.mean(), groups)
    units, mean, error = len(apart), float(rows.mean()), mean_error(rows, groups)
    if units < 2:
        return None
    quantile = t_quantile(units - 1, 0.5 + COVERAGE / 2)
    spread = math.sqrt(float(apart @ apart) / (units - 1))
    skew = 0.0 if spread == 0 else float(np.mean((apart / spread) ** 3))
    skew = min(max(skew, -_MOST_SKEW), _MOST_SKEW)
    low, high = (mean - error * _less_skewed(at, skew, units) for at in (quantile, -quantile))
    return low, high


def _less_skewed(quantile: float, skew: float, units: int) -> float:
    """The quantile of a t statistic whose units are skewed: the inverse of Hall's cubic
    g(t) = t + a t^2 / 3 + a^2 t^3 / 27 + a / 6, with a = skew / sqrt(units)."""
    a = skew / math.sqrt(units)
    if abs(a) < 1e-9:
        return quantile
    return 3 / a * float(np.cbrt(1 + a * (quantile - a / 6)) - 1)


def proportion_interval(
    contributions: Sequence[float] | Rows,
    right: Sequence[bool] | NDArray[np.bool_] | None = None,
    groups: Groups | None = None,
    *,
    classes: Sequence[int] | NDArray[np.int64] | None = None,
    ends: Interval = (0.0, 1.0),
) -> Interval:
    """Of a score between `ends` that is the mean of `contributions`, shape (n,), n >= 1; `right`
    says which rows are right, where a row is. `classes`: what each row tells of, -1 for nothing,
    where the score is no plain share of rows.

    Wilson's interval of as many independent rows as the score is worth: the spread of a proportion
    over the square of the score's own error (Korn and Graubard 1998): at most n,
    but for correlations.
    """
    low, high = ends
    rows = (_checked(contributions) - low) / (high - low)
    value = min(max(float(rows.mean()), 0.0), 1.0)
    n = len(rows)
    if groups is None and classes is None:
        found = wilson(value, n)
    else:
        known, floor, least = _known(len(rows), right, groups, classes)
        error, binomial = mean_error(rows, groups), value * (1 - value)
        if floor == 0:
            found = (0.0, 1.0)
        elif error == 0 or binomial == 0 or known < 1:
            found = wilson(value, floor)
        else:
            narrower = NORMAL / t_quantile(known, 0.5 + COVERAGE / 2)
            worth = binomial * (narrower / error) ** 2
            # A correlation is worth more than its rows, the nearer it is to an end.
            most = n if ends == (0.0, 1.0) else math.inf
            found = wilson(value, min(max(worth, least), most))
    return low + found[0] * (high - low), low + found[1] * (high - low)


def _known(
    n: int,
    right: Sequence[bool] | NDArray[np.bool_] | None,
    groups: Groups | None,
    classes: Sequence[int] | NDArray[np.int64] | None,
) -> tuple[int, int, float]:
    """(from how many units the error is known, what is independent even in a score without any
    spread, what it is worth at the least)."""
    where = np.arange(n) if groups is None else groups
    told = np.ones(n, bool) if classes is None else np.asarray(classes) >= 0
    units = _distinct(where[told])
    # Of classes as many as if each had no more units than the rarest; groups may hold all classes.
    rarest, names = units, 1
    if classes is not None and units:
        rarest, names = _rarest(np.asarray(classes)[told], where[told])
    floor = min(rarest * names, units)
    # The error is known from as many units as hold a row of the rarer kind: where two groups are
    # ever wrong it may be anything.
    known = min(rarest, units - 1)
    if right is not None:
        ok = np.asarray(right, dtype=bool)
        known = min(known, _distinct(where[ok & told]), _distinct(where[~ok & told]))
    # A quotient of sums over the same rows may be worth less, F1 by half.
    return known, floor, floor if classes is None else floor / 2


def _rarest(classes: NDArray[np.int64], where: NDArray[np.int64]) -> tuple[int, int]:
    """(the units of the class that is in the fewest, how many classes there are)."""
    pairs = np.unique(np.stack([classes, where]), axis=1)
    counts = np.unique(pairs[0], return_counts=True)[1]
    return int(counts.min()), len(counts)


def _distinct(values: NDArray[np.int64]) -> int:
    return len(np.unique(values))


def wilson(share: float, n: float) -> Interval:
    """Of a share among n > 0 independent rows; n may be an effective number."""
    z2 = NORMAL**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low = 0.0 if share == 0 else max(0.0, middle - half)
    return low, 1.0 if share == 1 else min(1.0, middle + half)


def percentile_interval(scores: Sequence[float] | Rows) -> Interval | None:
    """The central 95% of resampled scores; None when they are all the same, which tells nothing of
    rows that were not seen."""
    values, tail = np.asarray(scores, dtype=np.float64), (1 - COVERAGE) / 2
    low, high = (float(end) for end in np.quantile(values, [tail, 1 - tail]))
    return (low, high) if values.min() < values.max() else None


def _checked(contributions: Sequence[float] | Rows) -> Rows:
    rows = np.asarray(contributions, dtype=np.float64)
    if rows.ndim != 1 or rows.size == 0:
        raise ValueError(
            f"an interval needs one contribution a row, at least one; got shape {rows.shape}"
        )
    return rows
