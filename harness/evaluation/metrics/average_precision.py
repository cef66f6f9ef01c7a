"""Average precision: the mean over rows of the positive class of the precision among the rows that
are ranked as high or higher, as scikit-learn's `average_precision_score` (a step function, no
interpolation).

Of more than two classes the unweighted mean over classes, each against the rest by its `p_<class>`;
classes without a row are left out. NaN where one class has all rows.
"""

import math


def score(
    labels: list[str], predictions: dict[str, list[float]], *, positive: str | None
) -> float:
    parts = _parts(labels, predictions, positive)
    wholes = [_precisions(mine, scores)[0] for mine, scores in parts]
    return math.fsum(wholes) / len(wholes) if wholes else math.nan


def influences(
    labels: list[str], predictions: dict[str, list[float]], *, positive: str | None
) -> list[float]:
    """Their mean is the score; each is its linear part (the infinitesimal jackknife): a row of the
    class brings its own precision, and each row moves the precision of those that are ranked as
    low or lower."""
    moved, parts = [0.0] * len(labels), _parts(labels, predictions, positive)
    for mine, scores in parts:
        whole, precision, above = _precisions(mine, scores)
        size, total = sum(mine), len(mine)
        # Of rows ranked as low or lower: sums over those of the class of 1 / above and of
        # precision / above, where above counts the rows at the same or a higher place.
        order = sorted(range(total), key=lambda row: scores[row])
        per_hit, per_row = [0.0] * total, [0.0] * total
        hits = rows = 0.0
        start = 0
        while start < total:
            end = start
            while end < total and scores[order[end]] == scores[order[start]]:
                row = order[end]
                if mine[row]:
                    hits += 1 / above[row]
                    rows += precision[row] / above[row]
                end += 1
            for row in order[start:end]:
                per_hit[row], per_row[row] = hits, rows
            start = end
        for row in range(total):
            value = whole + (per_hit[row] * mine[row] - per_row[row]) * total / size
            if mine[row]:
                value += (precision[row] - whole) * total / size
            moved[row] += value / len(parts)
    return moved if parts else [math.nan] * len(labels)


def strata(
    labels: list[str], predictions: dict[str, list[float]], *, positive: str | None
) -> list[str]:
    """Of two classes what the rows of the positive one tell; of more that of each."""
    if "prediction" not in predictions:
        return labels
    return ["one" if label == positive else "" for label in labels]


def _parts(
    labels: list[str], predictions: dict[str, list[float]], positive: str | None
) -> list[tuple[list[bool], list[float]]]:
    """(whether each row is of the class, its score for it), one a class that is told apart."""
    of = (
        {positive: predictions["prediction"]}
        if "prediction" in predictions
        else {name[2:]: column for name, column in predictions.items()}
    )
    parts = [([label == name for label in labels], scores) for name, scores in of.items()]
    return [(mine, scores) for mine, scores in parts if 0 < sum(mine) < len(mine)]


def _precisions(mine: list[bool], scores: list[float]) -> tuple[float, list[float], list[int]]:
    """(average precision, each row's precision among the rows ranked as high or higher, how many
    these are)."""
    total = len(mine)
    order = sorted(range(total), key=lambda row: -scores[row])
    precision, above = [0.0] * total, [0] * total
    start = hits = 0
    while start < total:
        end = start
        while end < total and scores[order[end]] == scores[order[start]]:
            hits += mine[order[end]]
            end += 1
        for row in order[start:end]:
            precision[row], above[row] = hits / end, end
        start = end
    own = [value for value, is_mine in zip(precision, mine, strict=True) if is_mine]
    return math.fsum(own) / len(own), precision, above
