"""Precision, recall, F1 and the Jaccard index, each what classes have of hits, labels and guesses.

As scikit-learn's `precision_score`, `recall_score`, `f1_score`, `jaccard_score` with the averages
`binary` (of the positive class), `micro`, `macro` and `weighted`, and `zero_division` 0; classes
are those of the labels and of the guesses. The average `labels` is over the classes of the labels
alone: recall's is scikit-learn's `balanced_accuracy_score`.

A share is above / below, both sums over rows: hits / guesses, hits / labels, 2 hits / (labels +
guesses), hits / (labels + guesses - hits).
"""

import math
from collections import Counter

_ABOVE = {"precision": 1, "recall": 1, "f1": 2, "jaccard": 1}
_BELOW = {
    "precision": (0, 1, 0),
    "recall": (1, 0, 0),
    "f1": (1, 1, 0),
    "jaccard": (1, 1, -1),
}
"""What one label, one guess and one hit count below."""


def score(
    labels: list[str],
    predictions: dict[str, list[str]],
    *,
    of: str,
    average: str,
    positive: str | None = None,
) -> float:
    shares, weights = _shares(labels, predictions["prediction"], of, average, positive)
    return math.fsum(weights[name] * share for name, (share, _) in shares.items())


def influences(
    labels: list[str],
    predictions: dict[str, list[str]],
    *,
    of: str,
    average: str,
    positive: str | None = None,
) -> list[float]:
    """What each row moves, to first order; their mean is the score.

    A share is no mean over rows; its linear part is (the infinitesimal jackknife: Jaeckel 1972,
    Efron 1982, "The jackknife, the bootstrap and other resampling plans", ch. 6): row i has share +
    (what i adds above - share times what it adds below) n / below. Weights that are shares of rows
    (`weighted`) move too, by the difference of the label's share from the mean.
    """
    guesses = predictions["prediction"]
    shares, weights = _shares(labels, guesses, of, average, positive)
    whole = math.fsum(weights[name] * share for name, (share, _) in shares.items())
    above, (own, told, both) = _ABOVE[of], _BELOW[of]
    n, moved = len(labels), []
    for label, guess in zip(labels, guesses, strict=True):
        value, hit = whole, label == guess
        for name in [""] if average == "micro" else {label, guess}:
            if name not in shares:
                continue
            share, below = shares[name]
            if average == "micro":
                adds = above * hit - share * (own + told + both * hit)
            else:
                is_own, is_told = label == name, guess == name
                adds = above * (is_own and hit) - share * (
                    own * is_own + told * is_told + both * (is_own and hit)
                )
            value += weights[name] * adds * n / below if below else 0.0
        if average == "weighted":
            value += shares[label][0] - whole
        moved.append(value)
    return moved


def strata(
    labels: list[str],
    predictions: dict[str, list[str]],
    *,
    of: str,
    average: str,
    positive: str | None = None,
) -> list[str]:
    """The class of which a row tells something; "" where it tells nothing."""
    if average in ("macro", "labels"):
        return labels
    if average != "binary":
        return ["all"] * len(labels)
    own, told, _ = _BELOW[of]
    return [
        "one" if (own and label == positive) or (told and guess == positive) else ""
        for label, guess in zip(labels, predictions["prediction"], strict=True)
    ]


def _shares(
    labels: list[str], guesses: list[str], of: str, average: str, positive: str | None
) -> tuple[dict[str, tuple[float, int]], dict[str, float]]:
    """(class -> its share and what stands below, class -> its weight); for micro "" is all."""
    support, predicted = Counter(labels), Counter(guesses)
    hits = Counter(label for label, guess in zip(labels, guesses, strict=True) if label == guess)
    if average == "micro":
        total, hit = len(labels), sum(hits.values())
        return {"": _share(of, total, total, hit)}, {"": 1.0}
    if average == "binary":
        names = [positive or ""]
    elif average == "labels":
        names = list(support)
    else:
        names = list({**support, **predicted})
    shares = {name: _share(of, support[name], predicted[name], hits[name]) for name in names}
    if average == "weighted":
        return shares, {name: support[name] / len(labels) for name in names}
    return shares, dict.fromkeys(names, 1 / len(names))


def _share(of: str, own: int, told: int, hits: int) -> tuple[float, int]:
    label, guess, hit = _BELOW[of]
    below = label * own + guess * told + hit * hits
    return (_ABOVE[of] * hits / below if below else 0.0), below
