"""The root of the mean squared error, as scikit-learn's `root_mean_squared_error`."""

import math


def score(labels: list[float], predictions: dict[str, list[float]]) -> float:
    squares = _squares(labels, predictions["prediction"])
    try:
        return math.sqrt(math.fsum(squares) / len(squares))
    except OverflowError:
        return math.inf


def influences(labels: list[float], predictions: dict[str, list[float]]) -> list[float]:
    """Their mean is the score; each is its linear part (the infinitesimal jackknife)."""
    whole, squares = score(labels, predictions), _squares(labels, predictions["prediction"])
    if whole == 0:
        return [0.0] * len(labels)
    return [(whole + square / whole) / 2 for square in squares]


def _squares(labels: list[float], guesses: list[float]) -> list[float]:
    # A product: `**` raises OverflowError where a product is infinity.
    return [
        (label - guess) * (label - guess) for label, guess in zip(labels, guesses, strict=True)
    ]
