"""Mean absolute error."""


def rows(labels: list[float], predictions: dict[str, list[float]]) -> list[float]:
    """The absolute difference of each row."""
    guesses = predictions["prediction"]
    return [abs(label - guess) for label, guess in zip(labels, guesses, strict=True)]
