"""What each row contributes to a built-in metric: numbers whose mean over the rows is the score.

macro F1 is no mean over rows; its linear part is (the infinitesimal jackknife: Jaeckel 1972, Efron
1982, "The jackknife, the bootstrap and other resampling plans", ch. 6): row i contributes F1 + sum
over classes c of (2 [i is a hit of c] - F1_c ([label is c] + [guess is c])) n / (K (support_c +
predicted_c)).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.evaluation.scorer_program import ROWS, Columns, macro_f1

Rows = NDArray[np.float64]
RIGHT_OR_WRONG = frozenset({"accuracy"})


def contributions(scorer: str, labels: list[Any], predictions: Columns) -> Rows:
    """Shape (n,), in the order of `labels`. Raises KeyError for a scorer that is not built in."""
    if scorer == "macro_f1":
        return _macro_f1(labels, predictions)
    return np.asarray(ROWS[scorer](labels, predictions), dtype=np.float64)


def _macro_f1(labels: list[str], predictions: Columns) -> Rows:
    answer, guess = np.asarray(labels, dtype=str), np.asarray(predictions["prediction"], dtype=str)
    classes = sorted(set(labels))
    rows = np.full(len(labels), macro_f1(labels, predictions))
    for name in classes:
        is_label, is_guess = answer == name, guess == name
        size = float(is_label.sum() + is_guess.sum())
        hits = is_label & is_guess
        f1 = 2 * float(hits.sum()) / size
        rows += (
            (2.0 * hits - f1 * (is_label.astype(float) + is_guess))
            * len(labels)
            / (len(classes) * size)
        )
    return rows
