"""Mean squared error."""


def rows(labels: list[float], predictions: dict[str, list[float]]) -> list[float]:
    """The squared difference of each row. A product, for `**` raises OverflowError where a product
    is infinity, which the caller reports as a score that is not finite."""
    guesses = predictions["prediction"]
    return [
        (label - guess) * (label - guess) for label, guess in zip(labels, guesses, strict=True)
    ]
