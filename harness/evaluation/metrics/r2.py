"""R squared: 1 less the squared errors over those of the labels' mean, as scikit-learn's
`r2_score`. Where all labels are the same it is 1 without any error, else 0."""

import math


def score(labels: list[float], predictions: dict[str, list[float]]) -> float:
    errors, total = _parts(labels, predictions["prediction"])[:2]
    if total == 0:
        return 1.0 if errors == 0 else 0.0
    return 1 - errors / total


def influences(labels: list[float], predictions: dict[str, list[float]]) -> list[float]:
    """Their mean is the score; each is its linear part (the infinitesimal jackknife)."""
    errors, total, of_rows, around = _parts(labels, predictions["prediction"])
    whole = score(labels, predictions)
    if total == 0:
        return [whole] * len(labels)
    share, each = errors / total, total / len(labels)
    return [
        whole + (share * spread - error) / each
        for error, spread in zip(of_rows, around, strict=True)
    ]


def _parts(
    labels: list[float], guesses: list[float]
) -> tuple[float, float, list[float], list[float]]:
    """(sum of squared errors, of squared distances of labels from their mean, both of each row).
    Products: `**` raises OverflowError where a product is infinity."""
    middle = math.fsum(labels) / len(labels)
    apart = [label - guess for label, guess in zip(labels, guesses, strict=True)]
    errors = [one * one for one in apart]
    around = [(label - middle) * (label - middle) for label in labels]
    return _sum(errors), _sum(around), errors, around


def _sum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf
