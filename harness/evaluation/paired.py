"""Is one experiment better than another on the same rows by more than the luck of the rows?

A row's contribution is the mean over an experiment's seeds.

- Right or wrong (accuracy): McNemar's exact test ("Note on the sampling error of the difference
  between correlated proportions", 1947; exact form as in Dietterich, "Approximate statistical
  tests", 1998). Of the rows on which they differ half would fall to each by luck.
- Else: the paired bootstrap of the mean difference (Efron and Tibshirani, "An introduction to the
  bootstrap", 1993, ch. 16): p is the share of resampled means, shifted to 0, that lie at least as
  far out. Above BOOTSTRAP_ROWS rows the normal limit of the same statistic.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import scipy
from numpy.typing import NDArray

from harness.artifacts.objects import ObjectDamagedError, load_object
from harness.domain.metrics import METRICS, PerRow
from harness.domain.statuses import Split
from harness.evaluation import metrics
from harness.evaluation.intervals import percentile_interval, resampled_means
from harness.evaluation.outcome import LEVEL
from harness.evaluation.problems import Unscorable
from harness.evaluation.scorer_program import Columns
from harness.evaluation.scoring import FrozenScorer, scorer_of
from harness.evaluation.split_rows import TableFile, read_verified, require, table_of
from harness.evaluation.truth import Truth, read_truth
from harness.files import sha256_bytes
from harness.ledger.facts import ApprovedPlan, Evaluation
from harness.ledger.project import Project

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
    """Mean contribution of the candidate minus the reference's; McNemar's: a difference of rows."""
    half_width: float
    """Of the 95% interval of the difference of means over rows, in the metric's unit."""


def paired_test(candidate: Rows, reference: Rows, *, right_or_wrong: bool, seed: int) -> Paired:
    """Compare contributions, shape (seeds, n) each, with the same n >= 1 rows. Raises
    ValueError."""
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
    # Equal rows must differ by exactly 0: means of different numbers of seeds round differently,
    # and each such row would count as ahead or behind.
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
        test, p = "paired bootstrap", _bootstrap_p(differences, means)
        gain = float(differences.mean())
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
    """Twice the chance of at most min(ahead, behind) heads in ahead + behind tosses."""
    if ahead + behind == 0:
        return 1.0
    return min(1.0, 2 * float(scipy.special.bdtr(min(ahead, behind), ahead + behind, 0.5)))


def _bootstrap_p(differences: Rows, means: Rows | None) -> float:
    mean = float(differences.mean())
    if means is not None:
        # Add one to both: the observed mean is one of the possible ones, and no p is ever 0.
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
    if len(differences) < 2:
        return 0.0
    return float(differences.std(ddof=1)) / math.sqrt(len(differences))


_Frozen = tuple[str, TableFile, TableFile, str]
"""Scorer, training rows, validation rows, label."""


def paired(
    project: Project,
    approved: ApprovedPlan,
    own: Sequence[Evaluation],
    other: Sequence[Evaluation] | None,
) -> Paired | None:
    """The paired test of the evaluations `own` against `other`, or for None the trivial predictor.
    None where rows are not known: a script's score, or a clone without the vault."""
    mine, theirs = _hashes(own), _hashes(other or ())
    scorer = scorer_of(approved)
    labels = {evaluation.labels for evaluation in (*own, *(other or ()))}
    if not _has_rows(scorer) or not mine or len(labels) > 1:
        return None
    if other is not None and not theirs:
        return None
    objects = project.layout.objects
    if not all((objects / name).is_file() for name in {*mine, *theirs}):
        return None
    frozen = (
        scorer.name,
        table_of(project, approved, "train"),
        table_of(project, approved, Split.VALIDATION.value),
        str(approved.splits[Split.VALIDATION.value]["label"]),
    )
    try:
        return _paired(objects, frozen, mine, None if other is None else theirs)
    except (Unscorable, ObjectDamagedError):
        return None  # what is missing or changed is named by the gate's own checks


def contributions(metric: str, labels: list[Any], predictions: Columns) -> Rows:
    """What each row contributes to a metric, shape (n,), in the order of `labels`: its own value,
    or its influence where the metric is no mean."""
    file = import_module(f"{metrics.__name__}.{METRICS[metric].name}")
    influence = METRICS[metric].per_row is PerRow.INFLUENCE
    compute = file.influences if influence else file.rows
    return np.asarray(compute(labels, predictions), dtype=np.float64)


def _has_rows(scorer: FrozenScorer) -> bool:
    return scorer.entry is None and METRICS[scorer.name].per_row is not PerRow.NONE


def _hashes(evaluations: Sequence[Evaluation]) -> tuple[str, ...]:
    """Of all predictions; empty when one has none."""
    known = [evaluation.predictions for evaluation in evaluations if evaluation.value is not None]
    return tuple(name for name in known if name is not None) if None not in known else ()


@lru_cache(maxsize=1024)
def _paired(
    objects: Path, frozen: _Frozen, own: tuple[str, ...], other: tuple[str, ...] | None
) -> Paired:
    mine = np.stack([_rows(objects, frozen, name) for name in own])
    theirs = (
        _trivial(frozen)[None, :]
        if other is None
        else np.stack([_rows(objects, frozen, name) for name in other])
    )
    seed = int(sha256_bytes("/".join([*own, "against", *(other or ())]).encode())[:12], 16)
    exact = METRICS[frozen[0]].per_row is PerRow.RIGHT_OR_WRONG
    return paired_test(mine, theirs, right_or_wrong=exact, seed=seed)


@lru_cache(maxsize=256)
def _rows(objects: Path, frozen: _Frozen, predictions: str) -> Rows:
    return contributions(
        frozen[0], _truth(frozen).labels, orjson.loads(load_object(objects, predictions))
    )


@lru_cache(maxsize=8)
def _trivial(frozen: _Frozen) -> Rows:
    truth = _truth(frozen)
    return contributions(frozen[0], truth.labels, truth.baseline)


@lru_cache(maxsize=8)
def _truth(frozen: _Frozen) -> Truth:
    name, train, validation, label = frozen
    known = require(read_verified(train, "training"), label, "training")
    asked = require(read_verified(validation, "validation"), label, "validation")
    return read_truth(known, asked, FrozenScorer(name=name), which="validation")
