"""The median of the absolute errors, as scikit-learn's `median_absolute_error`."""

from statistics import median


def score(labels: list[float], predictions: dict[str, list[float]]) -> float:
    guesses = predictions["prediction"]
    return median(abs(label - guess) for label, guess in zip(labels, guesses, strict=True))
