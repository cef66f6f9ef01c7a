"""Accuracy: the share of rows whose class is right."""


def rows(labels: list[str], predictions: dict[str, list[str]]) -> list[float]:
    """1 where the class is right, else 0."""
    guesses = predictions["prediction"]
    return [float(label == guess) for label, guess in zip(labels, guesses, strict=True)]
