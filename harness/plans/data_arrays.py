"""Rows that are nearly the same in two tables: a copy with noise, another scale, a re-encoding.

Each number is brought to mean 0 and deviation 1 over the training rows. Two unrelated rows of d
such numbers then lie sqrt(2 d) apart; rows within NEAR of that distance are near-duplicates.
Distances are taken by blocks, on at most MOST_WORK multiplications and MOST_SAMPLED rows: beyond
them, on an even sample of both tables. Below LEAST_NUMBERS numbers a row unrelated rows come near
by chance, and nothing is looked for. Method: the nearest neighbour in the normalized space, as Barz
and Denzler (ciFAIR, 2020) look for copies of test images in training images.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.plans.data_rows import Columns, expected_share

NEAR = 0.1
"""Of the distance of unrelated rows; about a correlation of 0.995."""
LEAST_NUMBERS = 8
MOST_WORK = 20_000_000_000
"""Row pairs times numbers a row; some seconds of one core."""
MOST_SAMPLED = 10_000
"""Rows of each table: distances take time however few the numbers are."""
_BLOCK = 4_000_000
"""Most distances, and most numbers of rows, held at once: 32 MB each."""
_LEAST_ROWS = 20

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Near:
    """What a look at a sample of two tables found."""

    rows: tuple[int, ...]
    """Of the later table: those with a near-duplicate, but no exact copy, in the earlier one."""
    first: tuple[int, ...]
    """The nearest row of the earlier table, one for each."""
    looked_at: int
    """Rows of the later table that were compared."""
    of: int
    """With how many of the earlier table's rows."""
    usual: float
    """Share of the earlier table's rows that have a near-duplicate, but no exact copy, inside
    it."""
    alike: float
    """Share of the later table's rows with a near-duplicate or an exact copy in the earlier one."""
    alike_usual: float
    """The same inside the earlier table."""
    alike_expected: float
    """The most of `alike` that the later table's own near-duplicates and copies explain: see
    `rows.expected_share`."""

    @property
    def share(self) -> float:
        return len(self.rows) / self.looked_at


def near_duplicates(earlier: Columns, later: Columns, inputs: Sequence[str]) -> Near | None:
    """Compare rows by all numbers of `inputs`. None when there are too few rows or numbers to say
    anything."""
    names = [
        name
        for name in inputs
        if earlier[name].dtype.kind in "biuf" and later[name].dtype.kind in "biuf"
    ]
    width = sum(earlier[name][:1].size for name in names)
    if width < LEAST_NUMBERS or any(
        earlier[name].shape[1:] != later[name].shape[1:] for name in names
    ):
        return None
    n_before, n_after = len(earlier[names[0]]), len(later[names[0]])
    if n_before < _LEAST_ROWS:
        return None
    most = max(_LEAST_ROWS, int(math.sqrt(MOST_WORK / width)))
    most = min(most, MOST_SAMPLED, max(_LEAST_ROWS, 8 * _BLOCK // width))
    chosen, asked = _spread(n_before, most), _spread(n_after, most)
    before, after = _matrix(earlier, names, chosen), _matrix(later, names, asked)
    mean, deviation = before.mean(0), before.std(0)
    varied = deviation > 1e-12 * np.maximum(1.0, np.abs(mean))
    if int(varied.sum()) < LEAST_NUMBERS:
        return None
    before = (before[:, varied] - mean[varied]) / deviation[varied]
    after = (after[:, varied] - mean[varied]) / deviation[varied]
    limit = NEAR * math.sqrt(2 * before.shape[1])
    nearest, found, equal = _near(before, after, limit)
    _, inside, twins = _near(before, before, limit, own=True)
    pairs, _ = _close(after, limit)
    _, distinct = _close(before, limit)
    return Near(
        rows=tuple(int(asked[row]) for row in np.flatnonzero(found)),
        first=tuple(int(chosen[nearest[row]]) for row in np.flatnonzero(found)),
        looked_at=len(after),
        of=len(before),
        usual=float(inside.mean()),
        alike=float((found | equal).mean()),
        alike_usual=float((inside | twins).mean()),
        alike_expected=expected_share(pairs, len(after), distinct),
    )


def _near(
    before: Numbers, after: Numbers, limit: float, *, own: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """(the nearest row of `before`, whether it is near and no exact copy, whether it is one) for
    each row of `after`.

    With `own`, row i of `after` is row i of `before` and is not compared with itself.
    """
    squares = np.einsum("ij,ij->i", before, before)
    nearest = np.zeros(len(after), dtype=np.int64)
    found, equal = np.zeros(len(after), dtype=np.bool_), np.zeros(len(after), dtype=np.bool_)
    step = max(1, _BLOCK // len(before))
    for start in range(0, len(after), step):
        block = after[start : start + step]
        distances = squares - 2 * block @ before.T + np.einsum("ij,ij->i", block, block)[:, None]
        if own:
            places = np.arange(len(block))
            distances[places, start + places] = np.inf
        best = distances.argmin(1)
        exact = ((block - before[best]) ** 2).sum(
            1
        )  # the expanded square loses digits where rows are close
        nearest[start : start + step] = best
        found[start : start + step] = (exact <= limit * limit) & (exact > 0)
        equal[start : start + step] = exact == 0
    return nearest, found, equal


def _close(rows: Numbers, limit: float) -> tuple[int, int]:
    """(pairs of rows that are near or equal, rows that have none before them: each other one
    repeats an earlier)."""
    squares = np.einsum("ij,ij->i", rows, rows)
    pairs = firsts = 0
    step = max(1, _BLOCK // len(rows))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        distances = squares - 2 * block @ rows.T + np.einsum("ij,ij->i", block, block)[:, None]
        before = np.arange(len(rows)) < np.arange(start, start + len(block))[:, None]
        close = (distances <= limit * limit) & before
        pairs += int(close.sum())
        firsts += int((~close.any(1)).sum())
    return pairs, firsts


def _spread(n: int, most: int) -> NDArray[np.int64]:
    """Up to `most` row numbers, evenly over the table."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)


def _matrix(columns: Columns, names: Sequence[str], rows: NDArray[np.int64]) -> Numbers:
    return np.concatenate(
        [columns[name][rows].reshape(len(rows), -1).astype(np.float64) for name in names], axis=1
    )
