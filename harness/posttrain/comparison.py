"""Candidate against baseline on the same rows, by the paired bootstrap.

Of n rows with scores b_i (baseline) and c_i (candidate) the differences are d_i = c_i - b_i, delta
is their mean. 1000 times n of the d_i are drawn with replacement; the interval is from the 2.5% to
the 97.5% quantile of the means (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
section 13.3). Drawing differences keeps the pairs together, so that what is hard about a row for
both models is no part of the interval. With few rows the interval is too narrow (with equal
differences it has no width), hence the least number of rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness.domain.statuses import Verdict
from harness.evaluation.intervals import bootstrap_mean
from harness.posttrain.evaluator import Scores
from harness.posttrain.thresholds import THRESHOLDS


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Means over the rows; scores are in the evaluator's unit."""

    baseline: float
    candidate: float
    delta: float
    interval: tuple[float, float]
    """Of delta, 95%."""
    margin: float | None
    """Of the candidate; None where the evaluator gives none."""
    n: int


def compare(scores: Mapping[str, Scores], *, seed: int) -> Comparison:
    """`scores` of "baseline" and "candidate" have the same row ids."""
    ids = sorted(scores["candidate"].values)
    pairs = np.array(
        [[scores[who].values[name] for name in ids] for who in ("baseline", "candidate")]
    )
    differences = pairs[1] - pairs[0]
    margins = list(scores["candidate"].margins.values())
    return Comparison(
        baseline=float(pairs[0].mean()),
        candidate=float(pairs[1].mean()),
        delta=float(differences.mean()),
        interval=bootstrap_mean(differences, seed=seed),
        margin=float(np.mean(margins)) if margins else None,
        n=len(ids),
    )


def verdict_of(delta: float, low: float, high: float, n: int) -> tuple[Verdict, str]:
    """PASS when the difference is large enough and its interval [low, high] is above 0; FAIL when
    it is too small; INCONCLUSIVE when the n rows are too few to tell."""
    least = THRESHOLDS.delta
    told = f"delta {delta:+.3f}, interval [{low:+.3f}, {high:+.3f}]"
    if n < THRESHOLDS.rows:
        return Verdict.INCONCLUSIVE, f"{told}: {n} rows, fewer than {THRESHOLDS.rows}"
    if delta < least:
        return Verdict.FAIL, f"{told}: less than {least:g}"
    if low > 0:
        return Verdict.PASS, f"{told}: at least {least:g}, beyond the interval"
    return Verdict.INCONCLUSIVE, f"{told}: not beyond the interval; more rows would tell"
