"""Is one experiment better than another on the same rows by more than the luck of the rows?

Each row is predicted by both, so what counts are the rows on which they differ. A row's
contribution is the mean over an experiment's seeds.

- Right or wrong (accuracy): McNemar's exact test ("Note on the sampling error of the difference
  between correlated proportions", 1947; exact form as in Dietterich, "Approximate statistical
  tests", 1998). Of the rows that one gets right in more of its seeds than the other, half would
  fall to each by luck: a two-sided binomial test.
- Else: the paired bootstrap of the mean difference (Efron and Tibshirani, "An introduction to the
  bootstrap", 1993, ch. 16): differences are shifted to mean 0, and p is the share of resampled
  means that lie at least as far out. Above BOOTSTRAP_ROWS rows the normal limit of the same
  statistic.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from harness.evaluation.intervals import percentile_interval, resampled_means
from harness.evaluation.multiple import LEVEL

RESAMPLES = 4_999
"""With n resamples p is at least 1 / (n + 1): small enough for 250 corrected comparisons."""
BOOTSTRAP_ROWS = 1_000

Rows = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Paired:
    test: str
    p: float
    """Two-sided; 1 when the rows do not differ."""
    n: int
    candidate_ahead: int
    """Rows with the larger contribution by the candidate, whichever direction is better."""
    reference_ahead: int
    gain: float
    """Mean contribution of the candidate minus the reference's: the sign that the test answers
    for."""
    half_width: float
    """Of the 95% interval of the difference of means over rows, in the metric's unit."""


def paired_test(candidate: Rows, reference: Rows, *, right_or_wrong: bool, seed: int) -> Paired:
    """Compare contributions, shape (seeds, n) each with the same n >= 1 rows; finite. Deterministic
    in `seed`.

    Raises ValueError for shapes that do not fit.
    """
    if (
        candidate.ndim != 2
        or reference.ndim != 2
        or candidate.shape[1] != reference.shape[1]
        or not candidate.size
    ):
        raise ValueError(
            f"paired rows need shapes (k1, n) and (k2, n), got {candidate.shape} and"
            f" {reference.shape}"
        )
    differences = candidate.mean(0) - reference.mean(0)
    apart = np.abs(differences) > 1e-12 * np.maximum(1.0, np.abs(candidate).max(0))
    differences = np.where(apart, differences, 0.0)
    ahead, behind = int((differences > 0).sum()), int((differences < 0).sum())
    means = (
        resampled_means(differences, seed=seed, resamples=RESAMPLES)
        if len(differences) <= BOOTSTRAP_ROWS
        else None
    )
    if right_or_wrong:
        test, p, gain = "McNemar's exact test", mcnemar(ahead, behind), float(ahead - behind)
    else:
        test, p, gain = (
            "paired bootstrap",
            _bootstrap_p(differences, means),
            float(differences.mean()),
        )
    return Paired(
        test=test,
        p=p,
        n=len(differences),
        candidate_ahead=ahead,
        reference_ahead=behind,
        gain=gain,
        half_width=_half_width(differences, means),
    )


def mcnemar(ahead: int, behind: int) -> float:
    """The two-sided exact p-value: twice the chance of at most min(ahead, behind) heads in ahead +
    behind tosses."""
    if ahead + behind == 0:
        return 1.0
    return min(1.0, 2 * float(scipy.special.bdtr(min(ahead, behind), ahead + behind, 0.5)))


def _bootstrap_p(differences: Rows, means: Rows | None) -> float:
    mean = float(differences.mean())
    if means is not None:
        outside = int((np.abs(means - mean) >= abs(mean) * (1 - 1e-12)).sum())
        return (1 + outside) / (len(means) + 1)
    error = _error(differences)
    if error == 0:
        return 0.0 if mean else 1.0
    return 2 * float(scipy.special.ndtr(-abs(mean) / error))


def _half_width(differences: Rows, means: Rows | None) -> float:
    if means is None:
        return float(scipy.special.ndtri(1 - LEVEL / 2)) * _error(differences)
    low, high = percentile_interval(means)
    return (high - low) / 2


def _error(differences: Rows) -> float:
    return (
        float(differences.std(ddof=1)) / math.sqrt(len(differences))
        if len(differences) > 1
        else 0.0
    )
