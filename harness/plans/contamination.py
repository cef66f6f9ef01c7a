"""Rows that two tables share: exactly, nearly as numbers, and nearly as texts.

Exactly: by a hash of the inputs, and by one with the label.

Nearly, numbers: a copy with noise, another scale, a re-encoding. Each number is brought to mean 0
and deviation 1 over the training rows. Two unrelated rows of d such numbers then lie sqrt(2 d)
apart; rows within NEAR of that distance are near-duplicates. Large tables are sampled evenly. Below
LEAST_NUMBERS numbers a row unrelated rows come near by chance, and nothing is looked for. Method:
the nearest neighbour in the normalized space, as Barz and Denzler (ciFAIR, 2020) look for copies of
test images in training images.

Nearly, texts: by MinHash (Broder 1997). A text is the set of its SHINGLE-character pieces, in lower
case with single spaces. Two texts are near-duplicates when the Jaccard similarity of their sets is
at least SIMILAR, as Lee et al. ("Deduplicating training data makes language models better", 2022)
and The Pile have it.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.domain.distributions import gamma_quantile
from harness.plans.min_hash import Proposals

Column = NDArray[Any]
Columns = Mapping[str, Column]
SHOWN = 5
"""Rows named in a message; the count says how many there are."""
_BLOCK = 4_000_000
"""Most numbers held at once: 32 MB of float64."""


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Rows of a later table whose inputs occur in an earlier one."""

    rows: tuple[int, ...]
    """Of the later table, from 0."""
    first: tuple[int, ...]
    """For each of them, the first row of the earlier table with these inputs."""
    with_label: int
    """How many of them occur there with the same label too."""
    share: float
    """Of the later table's rows."""
    repeats: float
    """Share of the earlier table's rows with a twin inside it: what such data does by itself."""
    expected: float
    """The most of `share` that the later table's own twins explain: see `expected_share`."""


def shared_rows(earlier: Columns, later: Columns, inputs: Sequence[str], label: str) -> Shared:
    """Compare all rows by `inputs`; columns have the shape (n, ...), n >= 1."""
    before, after = row_hashes(earlier, inputs), row_hashes(later, inputs)
    first: dict[bytes, int] = {}
    for row, key in enumerate(before):
        first.setdefault(key, row)
    rows = tuple(row for row, key in enumerate(after) if key in first)
    answers = set(zip(before, row_hashes(earlier, [label]), strict=True))
    asked = row_hashes(later, [label])
    counts, own = Counter(before), Counter(after)
    pairs = sum(count * (count - 1) // 2 for count in own.values())
    return Shared(
        rows=rows,
        first=tuple(first[after[row]] for row in rows),
        with_label=sum((after[row], asked[row]) in answers for row in rows),
        share=len(rows) / len(after),
        repeats=sum(count for count in counts.values() if count > 1) / len(before),
        expected=expected_share(pairs, len(after), len(first)),
    )


def expected_share(pairs: int, rows: int, distinct: int) -> float:
    """The most that two independent drawings of one kind of data share, by the later one's own
    coincidences: `pairs` of its `rows` rows are alike."""
    if rows < 2:
        return 1.0  # a single row tells nothing
    # Two rows are alike with a probability of at most q, the Poisson upper bound of the pairs at
    # 97.5% over all pairs. Rows of the probabilities p_k then fall on `distinct` known ones with a
    # chance of sum p_k <= sqrt(distinct * sum p_k^2) = sqrt(distinct * q) (Cauchy and Schwarz).
    # Repeating the known rows does not raise it.
    most = gamma_quantile(pairs + 1, 0.975)
    return min(1.0, math.sqrt(distinct * most / math.comb(rows, 2)))


def row_hashes(columns: Columns, names: Sequence[str]) -> list[bytes]:
    """16 bytes a row, over the columns `names` in their order."""
    n = len(columns[names[0]])
    width = sum(max(1, columns[name][:1].size) for name in names)
    step = max(1, _BLOCK // width)
    return [
        key
        for start in range(0, n, step)
        for key in _block([columns[name][start : start + step] for name in names])
    ]


def _block(arrays: Sequence[Column]) -> list[bytes]:
    plain = [_plain(array) for array in arrays]
    return [
        hashlib.blake2b(b"\0".join(part[row] for part in plain), digest_size=16).digest()
        for row in range(len(arrays[0]))
    ]


def _plain(array: Column) -> list[bytes]:
    """One bytes a row."""
    # As float64: a column of integers in one file and of floats in the other hides no copy.
    flat = array.reshape(len(array), -1)
    if array.dtype.kind in "biuf":
        numbers = np.ascontiguousarray(flat, dtype="<f8") + 0.0  # -0.0 is 0.0
        return [row.tobytes() for row in numbers]
    return ["\x1f".join(map(str, row)).encode("utf-8", "surrogatepass") for row in flat.tolist()]


NEAR = 0.1
"""Of the distance of unrelated rows; about a correlation of 0.995."""
LEAST_NUMBERS = 8
MOST_WORK = 20_000_000_000
"""Row pairs times numbers a row: some seconds of one core."""
MOST_SAMPLED = 10_000
"""Rows of each table: distances take time however few the numbers are."""
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
    """Share of the earlier table's rows with a near-duplicate, but no exact copy, inside it."""
    alike: float
    """Share of the later table's rows with a near-duplicate or an exact copy in the earlier one."""
    alike_usual: float
    """The same inside the earlier table."""
    alike_expected: float
    """The most of `alike` that the later table's own twins explain: see `expected_share`."""

    @property
    def share(self) -> float:
        return len(self.rows) / self.looked_at


def near_duplicates(earlier: Columns, later: Columns, inputs: Sequence[str]) -> Near | None:
    """Compare rows by all numbers of `inputs`. None with too few rows or numbers."""
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
    nearest, near, equal = _near(before, after, limit)
    _, inside, twins = _near(before, before, limit, own=True)
    pairs, _ = _close(after, limit)
    _, distinct = _close(before, limit)
    return Near(
        rows=tuple(int(asked[row]) for row in np.flatnonzero(near)),
        first=tuple(int(chosen[nearest[row]]) for row in np.flatnonzero(near)),
        looked_at=len(after),
        of=len(before),
        usual=float(inside.mean()),
        alike=float((near | equal).mean()),
        alike_usual=float((inside | twins).mean()),
        alike_expected=expected_share(pairs, len(after), distinct),
    )


def _near(
    before: Numbers, after: Numbers, limit: float, *, own: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """(nearest row of `before`, whether it is near and no exact copy, whether it is one) for each
    row of `after`. With `own` the two are one table, and no row is compared with itself."""
    squares = np.einsum("ij,ij->i", before, before)
    nearest = np.zeros(len(after), dtype=np.int64)
    near, equal = np.zeros(len(after), dtype=np.bool_), np.zeros(len(after), dtype=np.bool_)
    step = max(1, _BLOCK // len(before))
    for start in range(0, len(after), step):
        block = after[start : start + step]
        distances = squares - 2 * block @ before.T + np.einsum("ij,ij->i", block, block)[:, None]
        if own:
            places = np.arange(len(block))
            distances[places, start + places] = np.inf
        best = distances.argmin(1)
        # Computed anew: the expanded square loses its digits where rows are close.
        exact = ((block - before[best]) ** 2).sum(1)
        nearest[start : start + step] = best
        near[start : start + step] = (exact <= limit * limit) & (exact > 0)
        equal[start : start + step] = exact == 0
    return nearest, near, equal


def _close(rows: Numbers, limit: float) -> tuple[int, int]:
    """(pairs of rows that are near or equal, rows that have none before them)."""
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


SIMILAR = 0.8
SHINGLE = 5
LEAST_CHARACTERS = 20
"""Of a column's mean length: shorter texts are names and categories, which repeat."""
MOST_TEXTS = 10_000
"""Of each table, evenly spread: about 0.3 ms a text."""
_LONGEST = 5_000
"""Characters of a text that are read."""


@dataclass(frozen=True, kw_only=True)
class NearTexts:
    rows: tuple[int, ...]
    """Of the later table: those with a near-duplicate in the earlier one."""
    first: tuple[int, ...]
    """A row of the earlier table that it is near to, one for each."""
    looked_at: int


def is_text(column: Column) -> bool:
    """Whether a column holds texts, not names of categories."""
    if column.dtype.kind not in "USO" or column.ndim != 1 or not len(column):
        return False
    head = [str(value) for value in column[:1000].tolist()]
    return sum(map(len, head)) / len(head) >= LEAST_CHARACTERS


def near_texts(earlier: Column, later: Column) -> NearTexts:
    """Compare two columns of texts, shape (n,) each; equal texts count, too."""
    index = Proposals()
    known = dict(_pieces(earlier))
    for row, pieces in known.items():
        index.add(row, pieces)
    rows, first, looked_at = [], [], 0
    for row, pieces in _pieces(later):
        looked_at += 1
        # MinHash only proposes pairs; the similarity of each is computed.
        near = [other for other in index.of(pieces) if _alike(pieces, known[other])]
        if near:
            rows.append(row)
            first.append(near[0])
    return NearTexts(rows=tuple(rows), first=tuple(first), looked_at=max(1, looked_at))


def _pieces(column: Column) -> Iterator[tuple[int, frozenset[str]]]:
    """(row, its pieces) of up to MOST_TEXTS texts that are long enough to tell."""
    step = max(1, -(-len(column) // MOST_TEXTS))
    for row in range(0, len(column), step):
        text = " ".join(str(column[row])[:_LONGEST].lower().split())
        if len(text) >= LEAST_CHARACTERS:
            starts = range(len(text) - SHINGLE + 1)
            yield row, frozenset(text[start : start + SHINGLE] for start in starts)


def _alike(first: frozenset[str], second: frozenset[str]) -> bool:
    return len(first & second) >= SIMILAR * len(first | second)


def text_columns(inputs: Sequence[str], columns: dict[str, Column]) -> list[str]:
    return [name for name in inputs if is_text(columns[name])]
