"""Macro F1: the unweighted mean of F1 over the classes that occur in the labels; a class that is
never predicted has F1 0."""

import math


def score(labels: list[str], predictions: dict[str, list[str]]) -> float:
    f1 = _f1(labels, predictions["prediction"])
    return math.fsum(value for value, _ in f1.values()) / len(f1)


def influences(labels: list[str], predictions: dict[str, list[str]]) -> list[float]:
    """What each row moves, to first order; their mean is the score.

    Macro F1 is no mean over rows; its linear part is (the infinitesimal jackknife: Jaeckel 1972,
    Efron 1982, "The jackknife, the bootstrap and other resampling plans", ch. 6): row i has F1 +
    sum over classes c of (2 [i is a hit of c] - F1_c ([label is c] + [guess is c])) n / (K
    (support_c + predicted_c)). Only the row's own label and guess have a term that is not 0.
    """
    guesses = predictions["prediction"]
    f1, whole = _f1(labels, guesses), score(labels, predictions)
    moved = []
    for label, guess in zip(labels, guesses, strict=True):
        value = whole
        for name in sorted({label, guess} & set(f1)):
            f1_of, size = f1[name]
            hit = 2.0 * (label == guess) - f1_of * ((label == name) + (guess == name))
            value += hit * len(labels) / (len(f1) * size)
        moved.append(value)
    return moved


def _f1(labels: list[str], guesses: list[str]) -> dict[str, tuple[float, int]]:
    """Class -> (its F1, its support plus how often it was predicted)."""
    support: dict[str, int] = dict.fromkeys(labels, 0)
    predicted, hits = dict.fromkeys(support, 0), dict.fromkeys(support, 0)
    for label, guess in zip(labels, guesses, strict=True):
        support[label] += 1
        if guess in predicted:
            predicted[guess] += 1
        hits[label] += label == guess
    return {
        name: (2 * hits[name] / (support[name] + predicted[name]), support[name] + predicted[name])
        for name in support
    }
