"""Cohen's kappa without weights, as scikit-learn's `cohen_kappa_score`: agreement beyond chance,
(hits - chance) / (1 - chance). 0 where labels and guesses are one and the same class alone, of
which scikit-learn says NaN."""

from collections import Counter


def score(labels: list[str], predictions: dict[str, list[str]]) -> float:
    hits, chance = _parts(labels, predictions["prediction"])[:2]
    return (hits - chance) / (1 - chance) if chance < 1 else 0.0


def influences(labels: list[str], predictions: dict[str, list[str]]) -> list[float]:
    """Their mean is the score; each is its linear part (the infinitesimal jackknife), which is the
    large-sample variance of Fleiss, Cohen and Everitt (1969)."""
    guesses = predictions["prediction"]
    hits, chance, of_labels, of_guesses = _parts(labels, guesses)
    if chance >= 1:
        return [0.0] * len(labels)
    whole = (hits - chance) / (1 - chance)
    moved = []
    for label, guess in zip(labels, guesses, strict=True):
        d_chance = of_labels.get(guess, 0.0) + of_guesses.get(label, 0.0) - 2 * chance
        d_hits = (label == guess) - hits
        moved.append(whole + (d_hits - (1 - whole) * d_chance) / (1 - chance))
    return moved


def strata(labels: list[str], predictions: dict[str, list[str]]) -> list[str]:
    """The class of which a row tells something."""
    return labels


def _parts(
    labels: list[str], guesses: list[str]
) -> tuple[float, float, dict[str, float], dict[str, float]]:
    """(share of hits, of hits by chance, share of each label, of each guess)."""
    n, of_labels, of_guesses = len(labels), Counter(labels), Counter(guesses)
    hits = sum(label == guess for label, guess in zip(labels, guesses, strict=True))
    chance = sum(count * of_guesses[name] for name, count in of_labels.items())
    return (
        hits / n,
        chance / n**2,
        {name: count / n for name, count in of_labels.items()},
        {name: count / n for name, count in of_guesses.items()},
    )
