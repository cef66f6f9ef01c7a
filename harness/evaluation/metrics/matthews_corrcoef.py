"""Matthews' correlation of labels and guesses, for any number of classes (Gorodkin 2004, "Comparing
two K-category assignments by a K-category correlation coefficient"), as scikit-learn's
`matthews_corrcoef`: 0 where all labels, or all guesses, are one class."""

import math
from collections import Counter


def score(labels: list[str], predictions: dict[str, list[str]]) -> float:
    both, own, told = _parts(labels, predictions["prediction"])[:3]
    return both / math.sqrt(own * told) if own > 0 and told > 0 else 0.0


def influences(labels: list[str], predictions: dict[str, list[str]]) -> list[float]:
    """Their mean is the score; each is its linear part (the infinitesimal jackknife): of covariance
    and variances, by the rule for quotients."""
    guesses = predictions["prediction"]
    both, own, told, of_labels, of_guesses = _parts(labels, guesses)
    if own <= 0 or told <= 0:
        return [0.0] * len(labels)
    root = math.sqrt(own * told)
    whole = both / root
    hits = sum(label == guess for label, guess in zip(labels, guesses, strict=True)) / len(labels)
    expected, same_own, same_told = hits - both, 1 - own, 1 - told
    moved = []
    for label, guess in zip(labels, guesses, strict=True):
        by_chance = of_labels.get(guess, 0.0) + of_guesses.get(label, 0.0) - 2 * expected
        d_both = (label == guess) - hits - by_chance
        d_own = 2 * (same_own - of_labels[label])
        d_told = 2 * (same_told - of_guesses[guess])
        moved.append(whole + d_both / root - whole / 2 * (d_own / own + d_told / told))
    return moved


def strata(labels: list[str], predictions: dict[str, list[str]]) -> list[str]:
    """The class of which a row tells something."""
    return labels


def _parts(
    labels: list[str], guesses: list[str]
) -> tuple[float, float, float, dict[str, float], dict[str, float]]:
    """(covariance, variance of labels, of guesses, share of each label, of each guess). Whole
    numbers until the last division, so that one class alone has a variance of exactly 0."""
    n, of_labels, of_guesses = len(labels), Counter(labels), Counter(guesses)
    hits = sum(label == guess for label, guess in zip(labels, guesses, strict=True))
    chance = sum(count * of_guesses[name] for name, count in of_labels.items())
    squares = [sum(count * count for count in of.values()) for of in (of_labels, of_guesses)]
    return (
        (hits * n - chance) / n**2,
        (n * n - squares[0]) / n**2,
        (n * n - squares[1]) / n**2,
        {name: count / n for name, count in of_labels.items()},
        {name: count / n for name, count in of_guesses.items()},
    )
