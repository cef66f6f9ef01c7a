"""Samples of a task whose true score is known, and how often an interval holds it.

Losses have long tails: absolute and squared errors are of Student's t with 5 degrees of freedom,
log losses of a sure model that is at times wrong. Classes are uneven (60%, 30%, 10%).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from harness.evaluation.paired import contributions, metric_interval

_TRUE_ROWS = 400_000
_CLASSES = np.array(["a", "b", "c"])

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


def _numbers(draw: np.random.Generator, hard: Normal) -> Sample:
    labels = draw.normal(size=len(hard))
    return labels.tolist(), {"prediction": (labels + stdtrit(5, _uniform(hard))).tolist()}


def _probabilities(draw: np.random.Generator, hard: Normal) -> Sample:
    labels = draw.choice(["a", "b"], len(hard))
    told = np.clip(1 - _uniform(hard) ** 4, 1e-9, 1.0)  # of the right class; a long tail to 0
    right = np.where(labels == "a", told, 1 - told)
    return labels.tolist(), {"p_a": right.tolist(), "p_b": (1 - right).tolist()}


METRICS_MEASURED: dict[str, Callable[[np.random.Generator, Normal], Sample]] = {
    "accuracy": _classes,
    "macro_f1": _classes,
    "mse": _numbers,
    "mae": _numbers,
    "log_loss": _probabilities,
}


@cache
def _truth(metric: str) -> float:
    draw = np.random.default_rng(99)
    sample = METRICS_MEASURED[metric](draw, draw.normal(size=_TRUE_ROWS))
    return float(contributions(metric, *sample).mean())


def coverage(metric: str, n: int, *, repeats: int, seed: int, groups: int = 0) -> float:
    """The share of `repeats` samples of n rows whose interval holds the true score; with `groups`
    the rows belong to so many, and nine tenths of what makes a row hard is its group's."""
    draw, truth, held = np.random.default_rng(seed), _truth(metric), 0
    where = np.repeat(np.arange(groups), n // groups) if groups else None
    for _ in range(repeats):
        hard = draw.normal(size=n)
        if where is not None:
            hard = np.sqrt(0.9) * draw.normal(size=groups)[where] + np.sqrt(0.1) * hard
        labels, predictions = METRICS_MEASURED[metric](draw, hard)
        interval = metric_interval(metric, labels, predictions, where)
        held += interval is not None and interval[0] <= truth <= interval[1]
    return held / repeats
