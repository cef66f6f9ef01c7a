"""Log loss, in nats."""

import math
import sys

EPSILON = sys.float_info.epsilon
"""Probabilities are clipped to [EPSILON, 1 - EPSILON] before the logarithm, so one certain miss
costs 36.04 nats."""


def rows(labels: list[str], predictions: dict[str, list[float]]) -> list[float]:
    """-ln of the label's share of the row's probabilities; a class without a column has
    probability 0."""
    totals = [math.fsum(row) for row in zip(*predictions.values(), strict=True)]
    losses = []
    for index, label in enumerate(labels):
        column = predictions.get(f"p_{label}")
        share = column[index] / totals[index] if column is not None and totals[index] > 0 else 0.0
        losses.append(-math.log(min(max(share, EPSILON), 1.0 - EPSILON)))
    return losses
