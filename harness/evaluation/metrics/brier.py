"""The Brier score, as scikit-learn's `brier_score_loss`: the squared distance of a row's
probabilities from its class, halved where there are two classes."""

import math


def rows(labels: list[str], predictions: dict[str, list[float]]) -> list[float]:
    """In [0, 1] of two classes, in [0, 2] of more; a class without a column has probability 0."""
    names, losses = list(predictions), []
    scale = 0.5 if len(names) < 3 else 1.0
    for label, row in zip(labels, zip(*predictions.values(), strict=True), strict=True):
        total = math.fsum(row) or 1.0
        own = f"p_{label}"
        apart = [
            (share / total - (name == own)) ** 2 for name, share in zip(names, row, strict=True)
        ]
        absent = 0.0 if own in predictions else 1.0
        losses.append(scale * (math.fsum(apart) + absent))
    return losses
