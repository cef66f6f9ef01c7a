"""The expected calibration error of the likeliest class (Guo, Pleiss, Sun and Weinberger 2017, "On
calibration of modern neural networks"): rows in BINS bins of equal width by the probability of
their likeliest class; the share of rows times the distance of mean probability and accuracy."""

import math

BINS = 15


def score(labels: list[str], predictions: dict[str, list[float]]) -> float:
    return math.fsum(influences(labels, predictions)) / len(labels)


def influences(labels: list[str], predictions: dict[str, list[float]]) -> list[float]:
    """Their mean is the score: each row's distance, with the sign of its bin's."""
    apart, sums = [], [0.0] * BINS
    for place, gap in _gaps(labels, predictions):
        apart.append((place, gap))
        sums[place] += gap
    return [gap if sums[place] >= 0 else -gap for place, gap in apart]


def _gaps(labels: list[str], predictions: dict[str, list[float]]) -> list[tuple[int, float]]:
    """(the bin of a row, the probability of its likeliest class less 1 where that is right). Bins
    hold their upper end; of equal probabilities the first class counts."""
    names, found = list(predictions), []
    for label, row in zip(labels, zip(*predictions.values(), strict=True), strict=True):
        most = max(row)
        share = most / (math.fsum(row) or 1.0)
        right = names[row.index(most)] == f"p_{label}"
        place = min(BINS - 1, max(0, math.ceil(share * BINS - 1e-9) - 1))
        found.append((place, share - right))
    return found
