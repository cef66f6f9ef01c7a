"""95% percentile bootstrap over rows.

A resample of n rows draws each with equal chance. Where a score depends only on how often each
distinct row is drawn, the counts are drawn from the multinomial distribution: the same law, for a
fraction of the work.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 1000
LEVEL = 0.95
CHUNK = 4_000_000
"""Most numbers held at once: 32 MB of float64."""
_CHEAP = 8
"""From so many rows a distinct value on, counts are drawn: one costs about as much as 8 rows."""

Interval = tuple[float, float]


def bootstrap_mean(
    contributions: Sequence[float] | NDArray[np.float64], *, seed: int, resamples: int = RESAMPLES
) -> Interval:
    """Interval of the mean of `contributions`, shape (n,), n >= 1, finite."""
    return percentile_interval(resampled_means(contributions, seed=seed, resamples=resamples))


def resampled_means(
    contributions: Sequence[float] | NDArray[np.float64], *, seed: int, resamples: int
) -> NDArray[np.float64]:
    """The means of `resamples` bootstrap samples, shape (resamples,)."""
    rows = np.asarray(contributions, dtype=np.float64)
    if rows.ndim != 1 or rows.size == 0:
        raise ValueError(
            f"a bootstrap needs one contribution a row, at least one; got shape {rows.shape}"
        )
    generator = np.random.default_rng(seed)
    values, counts = np.unique(rows, return_counts=True)
    if values.size * _CHEAP <= rows.size:
        return _means_by_counts(values, counts, generator, resamples)
    return _means_by_rows(rows, generator, resamples)


def bootstrap_macro_f1(labels: Sequence[str], predictions: Sequence[str], *, seed: int) -> Interval:
    """Interval of macro F1 over the classes that occur in each resample's labels; n >= 1 rows."""
    # A resample's F1 depends only on how often each (label, prediction) pair is in it.
    if not labels or len(labels) != len(predictions):
        raise ValueError(
            f"bootstrap_macro_f1 needs equally many, got {len(labels)} and {len(predictions)}"
        )
    _, encoded = np.unique(
        np.asarray([*labels, *predictions], dtype=object).astype(str), return_inverse=True
    )
    size = int(encoded.max()) + 1
    n = len(labels)
    pairs, counts = np.unique(encoded[:n].astype(np.int64) * size + encoded[n:], return_counts=True)
    generator = np.random.default_rng(seed)
    step = max(1, CHUNK // max(pairs.size, size))
    scores = [
        _macro_f1(
            generator.multinomial(n, counts / n, size=min(step, RESAMPLES - start)), pairs, size
        )
        for start in range(0, RESAMPLES, step)
    ]
    return percentile_interval(np.concatenate(scores))


def percentile_interval(scores: Sequence[float] | NDArray[np.float64]) -> Interval:
    """The central 95% of resampled scores."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(np.asarray(scores, dtype=np.float64), [tail, 1 - tail])
    return float(low), float(high)


def _means_by_counts(
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    generator: np.random.Generator,
    resamples: int,
) -> NDArray[np.float64]:
    n = int(counts.sum())
    step = max(1, CHUNK // values.size)
    parts = [
        generator.multinomial(n, counts / n, size=min(step, resamples - start)) @ values / n
        for start in range(0, resamples, step)
    ]
    return np.concatenate(parts)


def _means_by_rows(
    rows: NDArray[np.float64], generator: np.random.Generator, resamples: int
) -> NDArray[np.float64]:
    step = max(1, CHUNK // rows.size)
    parts = [
        rows[
            generator.integers(
                0, rows.size, size=(min(step, resamples - start), rows.size), dtype=np.int32
            )
        ].mean(1)
        for start in range(0, resamples, step)
    ]
    return np.concatenate(parts)


def _macro_f1(
    counts: NDArray[np.int64], pairs: NDArray[np.int64], size: int
) -> NDArray[np.float64]:
    """Macro F1 of each row of `counts`, (resamples, pairs); `pairs` are label * size + prediction,
    sorted."""
    label, guess = np.divmod(pairs, size)
    support = _summed(counts, label, size)
    predicted = _summed(counts, guess, size)
    right = label == guess
    hits = _summed(counts[:, right], label[right], size)
    present = support > 0
    # A class that a resample lacks is left out of its mean, as in the score itself: an F1 of 0 for
    # it would pull the interval down.
    f1 = np.where(present, 2 * hits / np.maximum(support + predicted, 1), 0.0)
    scores: NDArray[np.float64] = f1.sum(1) / present.sum(1)
    return scores


def _summed(counts: NDArray[np.int64], key: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Columns of `counts` with the same key added up: (resamples, size)."""
    total = np.zeros((counts.shape[0], size), dtype=np.int64)
    if key.size:
        order = np.argsort(key, kind="stable")
        names, starts = np.unique(key[order], return_index=True)
        total[:, names] = np.add.reduceat(counts[:, order], starts, axis=1)
    return total
