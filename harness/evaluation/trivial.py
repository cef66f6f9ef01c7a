"""The trivial predictor: what a score must beat when an experiment has no parent.

It knows the training labels and nothing about a row: the majority class (accuracy, macro F1, and
scripts whose labels are classes), the mean (MSE, and scripts whose labels are fractions), the
median (MAE: the constant that it is least for), or the class frequencies (log-loss).
"""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median

from harness.evaluation.answers import classes_of
from harness.evaluation.scorer_program import Columns


def majority_class(train: Sequence[str], n: int) -> Columns:
    """The commonest training class for each of n rows; of several the first in class order."""
    counts = Counter(train)
    best = max(counts.values())
    return {"prediction": [next(name for name in classes_of(train) if counts[name] == best)] * n}


def constant(train: Sequence[float], n: int, metric: str) -> Columns:
    """The training labels' median for mae, else their mean, for each of n rows."""
    return {"prediction": [median(train) if metric == "mae" else fmean(train)] * n}


def class_prior(train: Sequence[str], n: int) -> Columns:
    """Each class's frequency among the training labels, as probabilities, for each of n rows."""
    counts = Counter(train)
    return {f"p_{name}": [counts[name] / len(train)] * n for name in classes_of(train)}
