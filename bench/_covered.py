"""Samples of a task whose true score is known, and how often an interval holds it.

Losses have long tails: absolute and squared errors are of Student's t with 5 degrees of freedom,
log losses of a sure model that is at times wrong. Three classes are uneven (60%, 30%, 10%), of two
the positive one has 30% of the rows.
"""

import random
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from harness.domain.metrics import METRICS, IntervalMethod
from harness.evaluation.intervals import Interval, percentile_interval
from harness.evaluation.paired import contributions, metric_interval
from harness.evaluation.scorer_program import resampled_metric

_TRUE_ROWS = 400_000
_CLASSES = np.array(["a", "b", "c"])
_MANY = np.array([f"c{number}" for number in range(8)])
POSITIVE = "y"

Sample = tuple[list[Any], dict[str, list[Any]]]
Normal = NDArray[np.float64]
"""One a row, standard normal, alike within a group: how hard the row is."""


def _uniform(hard: Normal) -> Normal:
    return np.asarray(ndtr(hard), dtype=np.float64)


def _classes(draw: np.random.Generator, hard: Normal) -> Sample:
    labels = draw.choice(_CLASSES, len(hard), p=[0.6, 0.3, 0.1])
    others = draw.choice(_CLASSES, len(hard), p=[0.6, 0.3, 0.1])
    guesses = np.where(_uniform(hard) < 0.85, labels, others)
    return labels.tolist(), {"prediction": guesses.tolist()}


def _two(draw: np.random.Generator, hard: Normal) -> Sample:
    labels = np.where(draw.random(len(hard)) < 0.3, POSITIVE, "n")
    others = np.where(draw.random(len(hard)) < 0.3, POSITIVE, "n")
    guesses = np.where(_uniform(hard) < 0.75, labels, others)
    return labels.tolist(), {"prediction": guesses.tolist()}


def _scores(draw: np.random.Generator, hard: Normal) -> Sample:
    positive = draw.random(len(hard)) < 0.3
    # Of a hard row the score points the other way.
    scores = np.round(np.where(positive, 1, -1) * (0.9 - hard), 2)
    return np.where(positive, POSITIVE, "n").tolist(), {"prediction": scores.tolist()}


def _numbers(draw: np.random.Generator, hard: Normal) -> Sample:
    labels = draw.normal(size=len(hard))
    return labels.tolist(), {"prediction": (labels + stdtrit(5, _uniform(hard))).tolist()}


def _sizes(draw: np.random.Generator, hard: Normal) -> Sample:
    """Labels of a long tail, as prices have."""
    labels = draw.lognormal(size=len(hard))
    return labels.tolist(), {"prediction": (labels * np.exp(0.3 * hard)).tolist()}


def _probabilities(draw: np.random.Generator, hard: Normal) -> Sample:
    labels = draw.choice(["a", "b"], len(hard))
    told = np.clip(1 - _uniform(hard) ** 4, 1e-9, 1.0)  # of the right class; a long tail to 0
    right = np.where(labels == "a", told, 1 - told)
    return labels.tolist(), {"p_a": right.tolist(), "p_b": (1 - right).tolist()}


def _many(draw: np.random.Generator, hard: Normal) -> Sample:
    """Eight classes, of which the own one is ahead or behind by how hard the row is."""
    at = draw.integers(0, len(_MANY), len(hard))
    weights = draw.exponential(size=(len(hard), len(_MANY)))
    weights[np.arange(len(hard)), at] += np.maximum(0.0, 1.5 - hard)
    shares = weights / weights.sum(axis=1, keepdims=True)
    columns = {f"p_{name}": shares[:, place].tolist() for place, name in enumerate(_MANY)}
    return _MANY[at].tolist(), columns


_Draw = Callable[[np.random.Generator, Normal], Sample]
_OTHER: dict[str, _Draw] = {
    "log_loss": _probabilities,
    "brier": _probabilities,
    "top_k_accuracy": _many,
    "top_3_accuracy": _many,
    "top_5_accuracy": _many,
    "roc_auc": _scores,
    "average_precision": _scores,
    "mape": _sizes,
}
_NUMBERS = ("r2", "spearman", "mse", "rmse", "mae", "median_absolute_error")
METRICS_MEASURED: dict[str, _Draw] = {
    name: _OTHER.get(name)
    or (_numbers if name in _NUMBERS else _two if metric.binary else _classes)
    for name, metric in METRICS.items()
    if metric.interval is not IntervalMethod.NONE
}


def is_resampled(metric: str) -> bool:
    """Whether an interval costs 200 calls."""
    return METRICS[metric].interval is IntervalMethod.RESAMPLED


def interval_of(
    metric: str, sample: Sample, groups: NDArray[np.int64] | None, *, seed: int
) -> Interval | None:
    labels, predictions = sample
    of = METRICS[metric]
    if not is_resampled(metric):
        return metric_interval(metric, labels, predictions, groups, POSITIVE)
    job = {
        "labels": labels,
        "predictions": predictions,
        "groups": None if groups is None else groups.tolist(),
        "options": of.options_with(POSITIVE),
        "resamples": 200,
        "seed": seed,
    }
    file = import_module(f"harness.evaluation.metrics.{of.module}")
    return percentile_interval([float(one) for one in resampled_metric(file, job) if one])


@cache
def _truth(metric: str) -> float:
    draw, of = np.random.default_rng(99), METRICS[metric]
    labels, predictions = METRICS_MEASURED[metric](draw, draw.normal(size=_TRUE_ROWS))
    if is_resampled(metric):
        file = import_module(f"harness.evaluation.metrics.{of.module}")
        return float(file.score(labels, predictions, **of.options_with(POSITIVE)))
    return float(contributions(metric, labels, predictions, POSITIVE).mean())


def coverage(metric: str, n: int, *, repeats: int, seed: int, groups: int = 0) -> float:
    """The share of `repeats` samples of n rows whose interval holds the true score; with `groups`
    the rows belong to so many, and nine tenths of what makes a row hard is its group's."""
    draw, truth, held = np.random.default_rng(seed), _truth(metric), 0
    where = np.repeat(np.arange(groups), n // groups) if groups else None
    seeds = random.Random(seed)
    for _ in range(repeats):
        hard = draw.normal(size=n)
        if where is not None:
            hard = np.sqrt(0.9) * draw.normal(size=groups)[where] + np.sqrt(0.1) * hard
        sample = METRICS_MEASURED[metric](draw, hard)
        interval = interval_of(metric, sample, where, seed=seeds.randrange(2**32))
        held += interval is not None and interval[0] <= truth <= interval[1]
    return held / repeats
