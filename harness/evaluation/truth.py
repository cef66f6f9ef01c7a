"""Labels in the form that the scorer reads, and what they say about predictions: classes, and the
trivial ones."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from harness.evaluation import problems, trivial
from harness.evaluation.answers import class_names, classes_of, is_numeric, numbers
from harness.evaluation.problems import Unscorable
from harness.evaluation.scorer_program import Columns
from harness.evaluation.scorers import BUILT_IN, Needs, needs_of
from harness.evaluation.scoring import FrozenScorer

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
    """From the label columns of the training rows and of the split, shape (n,) each. Raises
    Unscorable."""
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
    try:
        return needs_of(scorer.name, scorer.entry)
    except KeyError as error:
        why = f"{scorer.name} is not built in (those are {', '.join(BUILT_IN)}) and has no script"
        raise Unscorable(problems.scorer_failed(why)) from error


def _numbers(train: Labels, split: Labels, scorer: FrozenScorer, needs: Needs) -> Truth:
    known = numbers(train)
    if (
        needs is Needs.ANY and train.dtype.kind in "biu"
    ):  # a script's whole numbers are taken for classes
        majority = trivial.majority_class(class_names(train), len(split))["prediction"]
        baseline: Columns = {"prediction": [float(name) for name in majority]}
    else:
        baseline = trivial.constant(known, len(split), scorer.name)
    labels = numbers(split)
    return Truth(
        needs=needs, labels=labels, numeric=True, classes=(), required=(), baseline=baseline
    )


def _classes(train: Labels, split: Labels, needs: Needs, numeric: bool) -> Truth:
    known, labels = class_names(train), class_names(split)
    predictor = trivial.class_prior if needs is Needs.PROBABILITIES else trivial.majority_class
    return Truth(
        needs=needs,
        labels=labels,
        numeric=numeric,
        classes=classes_of(known, labels),
        required=classes_of(known),
        baseline=predictor(known, len(split)),
    )
