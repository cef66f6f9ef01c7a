"""Labels in the form that the scorer reads, the classes, and the trivial predictor's answers. The
trivial predictor knows the training labels and nothing about a row.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from numpy.typing import NDArray

from harness.domain.metrics import METRICS, Needs, Trivial
from harness.evaluation import problems
from harness.evaluation.problems import Unscorable
from harness.evaluation.scorer_program import Columns
from harness.evaluation.scoring import FrozenScorer
from harness.plans.labels import (
    class_names,
    classes_of,
    is_numeric,
    numbers,
    positive_class,
    shown_classes,
)

Labels = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Truth:
    needs: Needs
    labels: list[Any]
    """Of the split, in its order: class names, or finite floats."""
    numeric: bool
    """Whether predictions are read as numbers, class names of numbers included."""
    classes: tuple[str, ...]
    """Of the training labels and the split's; empty where predictions are no classes."""
    required: tuple[str, ...]
    """Classes of the training labels: what predict can know, and must give probabilities for."""
    baseline: Columns
    """The trivial predictor's predictions for the split."""
    positive: str | None = None
    """The positive one of two classes, for a metric that has one."""


def read_truth(train: Labels, split: Labels, scorer: FrozenScorer, *, which: str) -> Truth:
    """From the label columns of training rows and split, shape (n,) each. Raises Unscorable."""
    needs = _needs(scorer)
    numeric = is_numeric(train) and is_numeric(split)
    if not len(train):
        raise Unscorable(problems.table_unusable("training", "there are none."))
    try:
        if needs is Needs.NUMBER or (needs is Needs.ANY and numeric):
            return _numbers(train, split, scorer, needs)
        return _classes(train, split, scorer, numeric)
    except ValueError as error:
        raise Unscorable(problems.table_unusable(which, str(error))) from error


def _needs(scorer: FrozenScorer) -> Needs:
    if scorer.entry is not None:
        return Needs.ANY
    if scorer.name not in METRICS:
        why = f"{scorer.name} is no built-in metric ({', '.join(METRICS)}) and has no script"
        raise Unscorable(problems.scorer_failed(why))
    return METRICS[scorer.name].needs


def _numbers(train: Labels, split: Labels, scorer: FrozenScorer, needs: Needs) -> Truth:
    known = numbers(train)
    # Nobody says whether a script's whole numbers are classes; the majority is the harder trivial
    # predictor to beat by chance when they are.
    if needs is Needs.ANY and train.dtype.kind in "biu":
        majority = majority_class(class_names(train), len(split))["prediction"]
        baseline: Columns = {"prediction": [float(name) for name in majority]}
    else:
        kind = Trivial.MEAN if needs is Needs.ANY else METRICS[scorer.name].trivial
        baseline = constant(known, len(split), kind)
    labels = numbers(split)
    return Truth(
        needs=needs, labels=labels, numeric=True, classes=(), required=(), baseline=baseline
    )


def _classes(train: Labels, split: Labels, scorer: FrozenScorer, numeric: bool) -> Truth:
    known, labels = class_names(train), class_names(split)
    required, classes = classes_of(known), classes_of(known, labels)
    needs, kind, positive = _needs(scorer), Trivial.MAJORITY, None
    if scorer.entry is None:
        metric = METRICS[scorer.name]
        kind = metric.trivial
        positive = positive_class(metric, required, scorer.positive, numeric=numeric)
    if positive is not None and len(classes) > 2:
        raise ValueError(
            f"the class {shown_classes([one for one in classes if one not in required])} is not"
            f" among the two of training ({shown_classes(required)})."
        )
    return Truth(
        needs=needs,
        labels=labels,
        numeric=numeric,
        classes=classes,
        required=required,
        baseline=_trivial(known, len(split), kind, positive),
        positive=positive,
    )


def _trivial(known: Sequence[str], n: int, kind: Trivial, positive: str | None) -> Columns:
    if kind is Trivial.FREQUENCIES and positive is not None:
        return {"prediction": [known.count(positive) / len(known)] * n}
    if kind is Trivial.FREQUENCIES:
        return class_prior(known, n)
    if kind is Trivial.POSITIVE:
        return {"prediction": [positive] * n}
    best = majority_class(known, n)
    if kind is Trivial.SURE:
        names = classes_of(known)
        return {f"p_{name}": [float(name == one) for one in best["prediction"]] for name in names}
    return best


def majority_class(train: Sequence[str], n: int) -> Columns:
    """The commonest training class for each of n rows; of several the first in class order."""
    counts = Counter(train)
    best = max(counts.values())
    return {"prediction": [next(name for name in classes_of(train) if counts[name] == best)] * n}


def constant(train: Sequence[float], n: int, kind: Trivial) -> Columns:
    """The training labels' median or mean for each of n rows."""
    return {"prediction": [median(train) if kind is Trivial.MEDIAN else fmean(train)] * n}


def class_prior(train: Sequence[str], n: int) -> Columns:
    """Each class's frequency among the training labels, as probabilities, for each of n rows."""
    counts = Counter(train)
    return {f"p_{name}": [counts[name] / len(train)] * n for name in classes_of(train)}
