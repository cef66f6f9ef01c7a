"""Mean absolute percentage error as a share (0.1 is 10%), as scikit-learn's
`mean_absolute_percentage_error`: a label of 0 counts as EPSILON."""

import sys

EPSILON = sys.float_info.epsilon


def rows(labels: list[float], predictions: dict[str, list[float]]) -> list[float]:
    """The absolute difference of each row over its label's size."""
    guesses = predictions["prediction"]
    return [
        abs(label - guess) / max(abs(label), EPSILON)
        for label, guess in zip(labels, guesses, strict=True)
    ]
