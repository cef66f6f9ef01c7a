"""Is one experiment better than another on the same rows by more than the luck of the rows?

A row's contribution is the mean over an experiment's seeds. Where both are equally good, either
could have had either's answers: the sign of each difference is a toss.

The signs of the differences are tossed (Fisher, "The design of experiments", 1935, section 21): p
is the share of all signs that give a sum at least as far from 0. The rows of a group keep one sign
together, whatever they have in common. Where each row is just right or wrong this is McNemar's
exact test ("Note on the sampling error of the difference between correlated proportions", 1947;
exact form as in Dietterich, "Approximate statistical tests", 1998), which has a closed form.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from harness.artifacts.objects import ObjectDamagedError, load_object
from harness.domain.distributions import coin_cdf, normal_cdf, t_quantile
from harness.domain.metrics import METRICS, IntervalMethod, Needs, PerRow
from harness.domain.statuses import Split
from harness.evaluation import metrics
from harness.evaluation.intervals import (
    Groups,
    Interval,
    mean_error,
    mean_interval,
    proportion_interval,
    unit_sums,
)
from harness.evaluation.outcome import LEVEL, MCNEMAR
from harness.evaluation.problems import Unscorable
from harness.evaluation.scorer_program import Columns
from harness.evaluation.scoring import FrozenScorer, scorer_of
from harness.evaluation.split_rows import (
    TableFile,
    group_codes,
    read_verified,
    require,
    table_of,
)
from harness.evaluation.truth import Truth, read_truth
from harness.files import sha256_bytes
from harness.ledger.facts import ApprovedPlan, Evaluation
from harness.ledger.project import Project
from harness.plans.labels import ClassLabel

TOSSES = 4_999
"""With n tosses of all signs p is at least 1 / (n + 1)."""
ENUMERATED = 13
"""Up to so many units every choice of signs is looked at, 2 ** 13."""
TOSSED = 1_000
"""Above so many the normal limit of the same statistic stands in."""

_HELD = 1_000_000
"""Most signs held at once: 8 MB."""

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
    """Mean contribution of the candidate minus the reference's."""
    half_width: float
    """Of the 95% interval of the difference of means over rows, in the metric's unit."""
    groups: int | None = None
    """How many groups the rows belong to; None where each row stands for itself."""


def paired_test(
    candidate: Rows,
    reference: Rows,
    *,
    right_or_wrong: bool,
    seed: int,
    groups: Groups | None = None,
) -> Paired:
    """Compare contributions, shape (seeds, n) each, with the same n >= 1 rows; `groups`: each
    row's. Raises ValueError."""
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
    sums = unit_sums(differences, groups)
    whole = right_or_wrong and groups is None and bool(np.isin(differences, (-1, 0, 1)).all())
    if whole:
        test, p = MCNEMAR, mcnemar(ahead, behind)
    else:
        test = "signs of the rows" if groups is None else "signs of whole groups"
        p = signs_p(sums, seed=seed)
    return Paired(
        test=test,
        p=p,
        n=len(differences),
        candidate_ahead=ahead,
        reference_ahead=behind,
        gain=float(differences.mean()),
        half_width=_half_width(differences, groups, len(sums)),
        groups=None if groups is None else len(sums),
    )


def mcnemar(ahead: int, behind: int) -> float:
    """Twice the chance of at most min(ahead, behind) heads in ahead + behind tosses."""
    if ahead + behind == 0:
        return 1.0
    return min(1.0, 2 * coin_cdf(min(ahead, behind), ahead + behind))


def signs_p(sums: Rows, *, seed: int) -> float:
    """Two-sided: how often tossed signs of `sums` give at least as large a sum as there is."""
    # A unit without a difference says nothing, whichever sign it has.
    sums = sums[sums != 0]
    total, units = abs(float(sums.sum())), len(sums)
    if units == 0:
        return 1.0
    # Rounding: sums of the same numbers in another order are as large.
    least = total - 1e-9 * float(np.abs(sums).sum())
    if units > TOSSED:
        return min(1.0, 2 * normal_cdf(-total / math.sqrt(float(sums @ sums))))
    if units <= ENUMERATED:
        numbers = np.arange(2**units)[:, None]
        signs = 1.0 - 2.0 * (numbers >> np.arange(units) & 1)
        return float(np.mean(np.abs(signs @ sums) >= least))
    generator, outside, left = np.random.default_rng(seed), 0, TOSSES
    while left:
        part = min(left, max(1, _HELD // units))
        bits = np.unpackbits(np.frombuffer(generator.bytes(part * units // 8 + 1), np.uint8))
        flipped = bits[: part * units].reshape(part, units).astype(np.float64) @ sums
        outside += int((np.abs(sums.sum() - 2 * flipped) >= least).sum())
        left -= part
    # Add one to both: the observed signs are among the possible ones, and no p is ever 0. Where
    # hardly any toss is as far out Hoeffding's bound (1963) says more, so that many tries cannot
    # multiply the least p beyond the level.
    bound = 2 * math.exp(-(total**2) / (2 * float(sums @ sums)))
    return min(bound, (1 + outside) / (TOSSES + 1))


def _half_width(differences: Rows, groups: Groups | None, units: int) -> float:
    if units < 2:
        return 0.0
    quantile = t_quantile(units - 1, 1 - LEVEL / 2)
    return quantile * mean_error(differences, groups)


_Frozen = tuple[str, TableFile, TableFile, str, str | None, ClassLabel | None]
"""Scorer, training rows, validation rows, label, group, the plan's positive class."""


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
    frozen = _frozen(project, approved, scorer)
    try:
        return _paired(objects, frozen, mine, None if other is None else theirs)
    except (Unscorable, ObjectDamagedError):
        return None  # what is missing or changed is named by the gate's own checks


def rerun_of(project: Project, approved: ApprovedPlan, own: Sequence[Evaluation]) -> float | None:
    """The mean square of a row's difference between two seeds of one experiment. None where rows
    are not known."""
    names, scorer, objects = _hashes(own), scorer_of(approved), project.layout.objects
    if not _has_rows(scorer) or len(names) < 2:
        return None
    frozen = _frozen(project, approved, scorer)
    try:
        rows = np.stack([_rows(objects, frozen, name) for name in names])
    except (Unscorable, ObjectDamagedError):
        return None
    return float(2 * rows.var(axis=0, ddof=1).mean())


def _frozen(project: Project, approved: ApprovedPlan, scorer: FrozenScorer) -> _Frozen:
    split = approved.splits[Split.VALIDATION.value]
    return (
        scorer.name,
        table_of(project, approved, "train"),
        table_of(project, approved, Split.VALIDATION.value),
        str(split["label"]),
        split.get("group"),
        scorer.positive,
    )


def contributions(
    metric: str, labels: list[Any], predictions: Columns, positive: str | None = None
) -> Rows:
    """What each row contributes to a metric, shape (n,), in the order of `labels`: its own value,
    or its influence where the metric is no mean."""
    of = METRICS[metric]
    file = _file(metric)
    compute = file.influences if of.per_row is PerRow.INFLUENCE else file.rows
    moved = compute(labels, predictions, **of.options_with(positive))
    return np.asarray(moved, dtype=np.float64)


def _file(metric: str) -> ModuleType:
    return import_module(f"{metrics.__name__}.{METRICS[metric].module}")


def metric_interval(
    metric: str,
    labels: list[Any],
    predictions: Columns,
    groups: Groups | None,
    positive: str | None = None,
) -> Interval | None:
    """The 95% interval of a metric of the harness over rows, or over groups, shape (n,); None for a
    metric that has none."""
    of = METRICS[metric]
    if of.interval is IntervalMethod.NONE:
        return None
    rows = contributions(metric, labels, predictions, positive)
    if not np.isfinite(rows).all():
        return None
    if of.interval is IntervalMethod.MEAN:
        interval = mean_interval(rows, groups)
        lowest, highest = of.range
        return interval and (max(interval[0], lowest), min(interval[1], highest))
    right, classes = None, None
    if of.per_row is PerRow.RIGHT_OR_WRONG:
        right = rows > 0
    elif of.needs is Needs.CLASS:
        right = np.equal(np.asarray(labels, str), np.asarray(predictions["prediction"], str))
    if of.per_row is PerRow.INFLUENCE:
        told = _file(metric).strata(labels, predictions, **of.options_with(positive))
        classes = np.unique(["", *told], return_inverse=True)[1][1:] - 1
    return proportion_interval(rows, right, groups, classes=classes, ends=of.range)


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
    return paired_test(mine, theirs, right_or_wrong=exact, seed=seed, groups=_groups(frozen))


@lru_cache(maxsize=256)
def _rows(objects: Path, frozen: _Frozen, predictions: str) -> Rows:
    truth, told = _truth(frozen), orjson.loads(load_object(objects, predictions))
    return contributions(frozen[0], truth.labels, told, truth.positive)


@lru_cache(maxsize=8)
def _trivial(frozen: _Frozen) -> Rows:
    truth = _truth(frozen)
    return contributions(frozen[0], truth.labels, truth.baseline, truth.positive)


@lru_cache(maxsize=8)
def _truth(frozen: _Frozen) -> Truth:
    name, train, validation, label, _, positive = frozen
    known = require(read_verified(train, "training"), label, "training")
    asked = require(read_verified(validation, "validation"), label, "validation")
    scorer = FrozenScorer(name=name, positive=positive)
    return read_truth(known, asked, scorer, which="validation")


@lru_cache(maxsize=8)
def _groups(frozen: _Frozen) -> Groups | None:
    validation, group = frozen[2], frozen[4]
    return group_codes(read_verified(validation, "validation"), group, "validation")
