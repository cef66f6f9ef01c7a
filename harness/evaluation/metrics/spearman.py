"""Spearman's correlation of ranks, ties at their middle rank, as `scipy.stats.spearmanr`. 0 where
all labels, or all predictions, are the same: nothing is ranked."""

import math
from bisect import bisect_left, bisect_right


def score(labels: list[float], predictions: dict[str, list[float]]) -> float:
    own, told = _places(labels), _places(predictions["prediction"])
    both, first, second = _mean(own, told), _mean(own, own), _mean(told, told)
    return _within(both / math.sqrt(first * second)) if first > 0 and second > 0 else 0.0


def influences(labels: list[float], predictions: dict[str, list[float]]) -> list[float]:
    """Their mean is the score; each is its linear part (the infinitesimal jackknife): of its own
    ranks, and of what it moves in the ranks of all others."""
    guesses = predictions["prediction"]
    own, told = _places(labels), _places(guesses)
    both, first, second = _mean(own, told), _mean(own, own), _mean(told, told)
    if first <= 0 or second <= 0:
        return [0.0] * len(labels)
    root = math.sqrt(first * second)
    whole = both / root
    own_told, own_own = _above(labels, told), _above(labels, own)
    told_own, told_told = _above(guesses, own), _above(guesses, told)
    moved = []
    for row, (one, other) in enumerate(zip(own, told, strict=True)):
        d_both = one * other + own_told[row] + told_own[row] - 3 * both
        d_first = one * one + 2 * own_own[row] - 3 * first
        d_second = other * other + 2 * told_told[row] - 3 * second
        moved.append(whole + d_both / root - whole / 2 * (d_first / first + d_second / second))
    return moved


def strata(labels: list[float], predictions: dict[str, list[float]]) -> list[str]:
    """All rows tell of one thing."""
    return ["all"] * len(labels)


def _places(values: list[float]) -> list[float]:
    """Of each row the share of rows below, ties half, less 1/2: they sum up to 0."""
    ordered, n = sorted(values), len(values)
    return [
        (bisect_left(ordered, value) + bisect_right(ordered, value)) / 2 / n - 0.5
        for value in values
    ]


def _above(values: list[float], weights: list[float]) -> list[float]:
    """Of each row the mean over all rows of `weights` where they lie above it, ties half."""
    n = len(values)
    order = sorted(range(n), key=lambda row: -values[row])
    found, before, start = [0.0] * n, 0.0, 0
    while start < n:
        end = start
        while end < n and values[order[end]] == values[order[start]]:
            end += 1
        same = math.fsum(weights[row] for row in order[start:end])
        for row in order[start:end]:
            found[row] = (before + same / 2) / n
        before += same
        start = end
    return found


def _mean(one: list[float], other: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True)) / len(one)


def _within(value: float) -> float:
    return min(1.0, max(-1.0, value))
