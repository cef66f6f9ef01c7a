"""Labels in the form that the scorer reads, the classes, and the trivial predictor's answers. The
trivial predictor knows the training labels and nothing about a row.
"""

import math
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
from harness.plans.labels import as_number, class_names, is_numeric, numbers

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


def read_truth(train: Labels, split: Labels, scorer: FrozenScorer, *, which: str) -> Truth:
    """From the label columns of training rows and split, shape (n,) each. Raises Unscorable."""
    needs = _needs(scorer)
    numeric = is_numeric(train) and is_numeric(split)
    if not len(train):
        raise Unscorable(problems.table_unusable("training", "there are none."))
    try:
        if needs is Needs.NUMBER or (needs is Needs.ANY and numeric):
            return _numbers(train, split, scorer, needs)
        return _classes(train, split, needs, numeric)
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


def _classes(train: Labels, split: Labels, needs: Needs, numeric: bool) -> Truth:
    known, labels = class_names(train), class_names(split)
    predictor = class_prior if needs is Needs.PROBABILITIES else majority_class
    return Truth(
        needs=needs,
        labels=labels,
        numeric=numeric,
        classes=classes_of(known, labels),
        required=classes_of(known),
        baseline=predictor(known, len(split)),
    )


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


def classes_of(*groups: Sequence[str]) -> tuple[str, ...]:
    """All class names, sorted: numbers by size, then text."""
    return tuple(sorted({name for group in groups for name in group}, key=_order))


def _order(name: str) -> tuple[bool, float, str]:
    number = as_number(name)
    known = number is not None and math.isfinite(number)
    return not known, number if known and number is not None else 0.0, name
