"""The metrics that the harness computes itself: one row each, read by plans, scoring and
comparison. Names and definitions are those of scikit-learn's scorers, without `neg_`: losses are
minimized.

What a row promises is computed by `harness/evaluation/metrics/<file>.py`: `rows(labels,
predictions)` where the metric is a mean over rows, else `score(labels, predictions)`; both get the
row's options by name, and `positive` where one class is the positive one. Texts, arrays and
policies would be further forms of a prediction (`Needs`).
"""

import math
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from harness.domain.late import Late, dataclass
from harness.domain.statuses import Direction


class Needs(StrEnum):
    """The form of a prediction."""

    CLASS = "class"
    """`prediction` is a class name."""
    NUMBER = "number"
    """`prediction` is a finite number."""
    SCORES = "scores"
    """Of two classes a number a row, `score` or `prediction`, the higher the likelier the positive
    class, or `p_<class>`; of more classes `p_<class>` for each."""
    PROBABILITIES = "probabilities"
    """`p_<class>` for each class, in [0, 1], summing to 1."""
    ANY = "any"
    """A frozen script's: `prediction` or `p_<class>` columns; numbers where the labels are
    numbers."""


class PerRow(StrEnum):
    """What one row contributes to the score."""

    RIGHT_OR_WRONG = "right or wrong"
    """0 or 1; their mean is the score. Pairs are compared by McNemar's exact test, of several seeds
    by the signs of the differences."""
    VALUE = "value"
    """A number; their mean is the score. Pairs are compared by the signs of the differences."""
    INFLUENCE = "influence"
    """The score is no mean, but `influences(labels, predictions)` has it as its mean to first
    order (the infinitesimal jackknife). Pairs are compared by the signs of the differences."""
    NONE = "none"
    """Nothing: two experiments are compared by their seeds alone."""


class IntervalMethod(StrEnum):
    """Where the 95% interval over rows comes from."""

    PROPORTION = "Wilson's score interval"
    """Of a score between two ends that is built of what is right; it has a width at both too."""
    MEAN = "Student's t, corrected for skewness"
    """Of a mean of losses, or of influences, which have long tails."""
    RESAMPLED = "the score of resampled rows"
    """Each resample costs one call of `score`."""
    NONE = "none"
    """The metric has no interval, and every page says so."""


class Trivial(StrEnum):
    """The predictor that knows the training labels and nothing about a row."""

    MAJORITY = "majority class"
    POSITIVE = "positive class"
    SURE = "majority class, as certain"
    FREQUENCIES = "class frequencies"
    MEAN = "mean"
    MEDIAN = "median"


@dataclass(frozen=True, kw_only=True)
class Metric(Late):
    name: str
    direction: Direction
    """The direction in which it gets better; a plan that says the other contradicts itself."""
    range: tuple[float, float]
    needs: Needs
    per_row: PerRow
    interval: IntervalMethod
    trivial: Trivial
    binary: bool = False
    """Of two classes, of which one is the positive one."""
    file: str = ""
    """Below harness/evaluation/metrics, where it is not called like the metric."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the file's functions get beside labels and predictions."""
    weakness: str = ""
    """Which answer that knows nothing of a row scores like the truth: told by `plan check`."""

    @property
    def module(self) -> str:
        return self.file or self.name

    @property
    def has_positive(self) -> bool:
        """Whether one of two classes is the positive one."""
        return self.binary or self.needs is Needs.SCORES

    def options_with(self, positive: str | None) -> dict[str, Any]:
        """What its file's functions are called with, beside labels and predictions."""
        return dict(self.options) | ({"positive": positive} if self.has_positive else {})


UNIT = (0.0, 1.0)
LOSS = (0.0, math.inf)
UP, DOWN = Direction.MAXIMIZE, Direction.MINIMIZE


def _share(name: str, of: str, average: str, **more: Any) -> Metric:
    """What hits, labels and guesses of classes make: precision, recall, F1, Jaccard."""
    return Metric(
        name=name,
        direction=UP,
        range=UNIT,
        needs=Needs.CLASS,
        per_row=PerRow.INFLUENCE,
        interval=IntervalMethod.PROPORTION,
        trivial=more.pop("trivial", Trivial.MAJORITY),
        binary=average == "binary",
        file="class_shares",
        options={"of": of, "average": average},
        **more,
    )


def _top(k: int, name: str) -> Metric:
    return Metric(
        name=name,
        direction=UP,
        range=UNIT,
        needs=Needs.PROBABILITIES,
        per_row=PerRow.RIGHT_OR_WRONG,
        interval=IntervalMethod.PROPORTION,
        trivial=Trivial.FREQUENCIES,
        file="top_k_accuracy",
        options={"k": k},
    )


def _agreement(name: str) -> Metric:
    """Beyond chance, of classes."""
    return Metric(
        name=name,
        direction=UP,
        range=(-1, 1),
        needs=Needs.CLASS,
        per_row=PerRow.INFLUENCE,
        interval=IntervalMethod.PROPORTION,
        trivial=Trivial.MAJORITY,
    )


def _ranking(name: str) -> Metric:
    return Metric(
        name=name,
        direction=UP,
        range=UNIT,
        needs=Needs.SCORES,
        per_row=PerRow.INFLUENCE,
        interval=IntervalMethod.PROPORTION,
        trivial=Trivial.FREQUENCIES,
    )


def _loss(
    name: str, trivial: Trivial, *, needs: Needs = Needs.NUMBER, most: float = math.inf
) -> Metric:
    """The mean of the rows' losses."""
    return Metric(
        name=name,
        direction=DOWN,
        range=(0, most),
        needs=needs,
        per_row=PerRow.VALUE,
        interval=IntervalMethod.MEAN,
        trivial=trivial,
    )


_RECALL = "the positive class for all rows has recall 1"
_CALIBRATED = "the class frequencies of training for all rows are calibrated: about 0"

_ROWS = (
    Metric(
        name="accuracy",
        direction=UP,
        range=UNIT,
        needs=Needs.CLASS,
        per_row=PerRow.RIGHT_OR_WRONG,
        interval=IntervalMethod.PROPORTION,
        trivial=Trivial.MAJORITY,
    ),
    _share("balanced_accuracy", "recall", "labels"),
    _top(2, "top_k_accuracy"),
    _top(3, "top_3_accuracy"),
    _top(5, "top_5_accuracy"),
    _share("f1", "f1", "binary", trivial=Trivial.POSITIVE),
    _share("f1_micro", "f1", "micro"),
    _share("f1_macro", "f1", "macro"),
    _share("f1_weighted", "f1", "weighted"),
    _share("precision", "precision", "binary", trivial=Trivial.POSITIVE),
    _share("precision_micro", "precision", "micro"),
    _share("precision_macro", "precision", "macro"),
    _share("precision_weighted", "precision", "weighted"),
    _share("recall", "recall", "binary", weakness=_RECALL),
    _share("recall_micro", "recall", "micro"),
    _share("recall_macro", "recall", "macro"),
    _share("recall_weighted", "recall", "weighted"),
    _share("jaccard", "jaccard", "binary", trivial=Trivial.POSITIVE),
    _share("jaccard_micro", "jaccard", "micro"),
    _share("jaccard_macro", "jaccard", "macro"),
    _share("jaccard_weighted", "jaccard", "weighted"),
    _agreement("matthews_corrcoef"),
    _agreement("cohen_kappa"),
    _ranking("roc_auc"),
    _ranking("average_precision"),
    _loss("log_loss", Trivial.FREQUENCIES, needs=Needs.PROBABILITIES),
    _loss("brier", Trivial.FREQUENCIES, needs=Needs.PROBABILITIES, most=2.0),
    Metric(
        name="ece",
        direction=DOWN,
        range=UNIT,
        needs=Needs.PROBABILITIES,
        per_row=PerRow.INFLUENCE,
        interval=IntervalMethod.NONE,
        trivial=Trivial.SURE,
        weakness=_CALIBRATED,
    ),
    Metric(
        name="r2",
        direction=UP,
        range=(-math.inf, 1),
        needs=Needs.NUMBER,
        per_row=PerRow.INFLUENCE,
        interval=IntervalMethod.MEAN,
        trivial=Trivial.MEAN,
    ),
    Metric(
        name="spearman",
        direction=UP,
        range=(-1, 1),
        needs=Needs.NUMBER,
        per_row=PerRow.INFLUENCE,
        interval=IntervalMethod.PROPORTION,
        trivial=Trivial.MEDIAN,
    ),
    _loss("mse", Trivial.MEAN),
    Metric(
        name="rmse",
        direction=DOWN,
        range=LOSS,
        needs=Needs.NUMBER,
        per_row=PerRow.INFLUENCE,
        interval=IntervalMethod.MEAN,
        trivial=Trivial.MEAN,
    ),
    _loss("mae", Trivial.MEDIAN),
    _loss("mape", Trivial.MEDIAN),
    Metric(
        name="median_absolute_error",
        direction=DOWN,
        range=LOSS,
        needs=Needs.NUMBER,
        per_row=PerRow.NONE,
        interval=IntervalMethod.RESAMPLED,
        trivial=Trivial.MEDIAN,
    ),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ROWS}
