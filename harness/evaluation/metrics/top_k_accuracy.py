"""Top-k accuracy: the share of rows whose class is among the k likeliest.

As scikit-learn's `top_k_accuracy_score`: of equal probabilities the later class in class order
counts as the likelier.
"""


def rows(labels: list[str], predictions: dict[str, list[float]], *, k: int) -> list[float]:
    """1 where fewer than k classes are likelier than the row's own, else 0; a class without a
    column is never among them."""
    names, columns = list(predictions), list(predictions.values())
    found = []
    for label, row in zip(labels, zip(*columns, strict=True), strict=True):
        if f"p_{label}" not in predictions:
            found.append(0.0)
            continue
        own = names.index(f"p_{label}")
        ahead = sum(
            share > row[own] or (share == row[own] and place > own)
            for place, share in enumerate(row)
        )
        found.append(float(ahead < k))
    return found
