"""Several comparisons with one reference: the more are made, the likelier one is lucky.

Holm's step-down procedure ("A simple sequentially rejective multiple test procedure", 1979): with
p-values in rising order, the i-th of m is multiplied by m - i + 1, and none may fall below the one
before it. The chance of any false alarm among the m is then at most the level, whatever the
dependence between them.
"""

from collections.abc import Sequence

LEVEL = 0.05
"""Two-sided; one minus the level of every interval and floor."""


def holm(p_values: Sequence[float]) -> list[float]:
    """The corrected p-values, in the given order, at most 1. Raises ValueError for one outside [0,
    1]."""
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError(f"p-values lie in [0, 1], got {list(p_values)}")
    corrected, least = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        least = max(least, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = least
    return corrected
