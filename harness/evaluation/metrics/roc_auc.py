"""The area under the ROC curve: how often a row of the positive class is ranked above a row of the
other, ties half (Mann and Whitney), as scikit-learn's `roc_auc_score`.

Of more than two classes the unweighted mean over classes, each against the rest by its `p_<class>`
(`multi_class="ovr"`, `average="macro"`); classes without a row are left out. NaN where one class
has all rows.
"""

import math
from bisect import bisect_left, bisect_right


def score(
    labels: list[str], predictions: dict[str, list[float]], *, positive: str | None
) -> float:
    areas = [_area(mine, scores)[0] for mine, scores in _parts(labels, predictions, positive)]
    return math.fsum(areas) / len(areas) if areas else math.nan


def influences(
    labels: list[str], predictions: dict[str, list[float]], *, positive: str | None
) -> list[float]:
    """Their mean is the score; each is its linear part (the infinitesimal jackknife): how often the
    row is ranked rightly against those of the other side. The variance is that of DeLong, DeLong
    and Clarke-Pearson (1988)."""
    moved, parts = [0.0] * len(labels), _parts(labels, predictions, positive)
    for mine, scores in parts:
        area, places = _area(mine, scores)
        sizes = {True: sum(mine), False: len(mine) - sum(mine)}
        for row, place in enumerate(places):
            moved[row] += (area + (place - area) * len(mine) / sizes[mine[row]]) / len(parts)
    return moved if parts else [math.nan] * len(labels)


def strata(
    labels: list[str], predictions: dict[str, list[float]], *, positive: str | None
) -> list[str]:
    """The class of which a row tells something."""
    return labels


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


def _area(mine: list[bool], scores: list[float]) -> tuple[float, list[float]]:
    """(the area, each row's share of the other side that is ranked rightly against it)."""
    sides: dict[bool, list[float]] = {True: [], False: []}
    for is_mine, value in zip(mine, scores, strict=True):
        sides[is_mine].append(value)
    for side in sides.values():
        side.sort()
    places = []
    for is_mine, value in zip(mine, scores, strict=True):
        other = sides[not is_mine]
        below = (bisect_left(other, value) + bisect_right(other, value)) / 2 / len(other)
        places.append(below if is_mine else 1 - below)
    own = [place for place, is_mine in zip(places, mine, strict=True) if is_mine]
    return math.fsum(own) / len(own), places
