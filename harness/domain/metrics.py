"""The metrics that the harness computes itself: one row each, read by plans, scoring and
comparison.

What a row promises is computed by `harness/evaluation/metrics/<name>.py`: `rows(labels,
predictions)` where the metric is a mean over rows, else `score(labels, predictions)`.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from harness.domain.statuses import Direction


class Needs(StrEnum):
    """The form of a prediction."""

    CLASS = "class"
    """`prediction` is a class name."""
    NUMBER = "number"
    """`prediction` is a finite number."""
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
    """Of a score in [0, 1] that counts what is right; it has a width at 0 and 1 too."""
    MEAN = "Student's t, corrected for skewness"
    """Of a mean of losses, which have long tails."""
    RESAMPLED = "the score of resampled rows"
    """Each resample costs one call of `score`."""
    NONE = "none"
    """The metric has no interval, and every page says so."""


class Trivial(StrEnum):
    """The predictor that knows the training labels and nothing about a row."""

    MAJORITY = "majority class"
    FREQUENCIES = "class frequencies"
    MEAN = "mean"
    MEDIAN = "median"


@dataclass(frozen=True, kw_only=True)
class Metric:
    name: str
    direction: Direction
    """The direction in which it gets better; a plan that says the other contradicts itself."""
    range: tuple[float, float]
    needs: Needs
    per_row: PerRow
    interval: IntervalMethod
    trivial: Trivial


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            name="accuracy",
            direction=Direction.MAXIMIZE,
            range=(0, 1),
            needs=Needs.CLASS,
            per_row=PerRow.RIGHT_OR_WRONG,
            interval=IntervalMethod.PROPORTION,
            trivial=Trivial.MAJORITY,
        ),
        Metric(
            name="macro_f1",
            direction=Direction.MAXIMIZE,
            range=(0, 1),
            needs=Needs.CLASS,
            per_row=PerRow.INFLUENCE,
            interval=IntervalMethod.PROPORTION,
            trivial=Trivial.MAJORITY,
        ),
        Metric(
            name="mse",
            direction=Direction.MINIMIZE,
            range=(0, math.inf),
            needs=Needs.NUMBER,
            per_row=PerRow.VALUE,
            interval=IntervalMethod.MEAN,
            trivial=Trivial.MEAN,
        ),
        Metric(
            name="mae",
            direction=Direction.MINIMIZE,
            range=(0, math.inf),
            needs=Needs.NUMBER,
            per_row=PerRow.VALUE,
            interval=IntervalMethod.MEAN,
            trivial=Trivial.MEDIAN,
        ),
        Metric(
            name="log_loss",
            direction=Direction.MINIMIZE,
            range=(0, math.inf),
            needs=Needs.PROBABILITIES,
            per_row=PerRow.VALUE,
            interval=IntervalMethod.MEAN,
            trivial=Trivial.FREQUENCIES,
        ),
    )
}
