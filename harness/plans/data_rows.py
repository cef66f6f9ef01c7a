"""Rows that occur in two tables, exactly: by a hash of the inputs, and by one that takes the label
in.

Numbers are compared as float64 and text as it is, so that a column of integers in one file and of
floats in the other, or a longer text somewhere in the file, hides nothing. Memory is one hash a
row, and one block of rows.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# its submodules are imported at their first use: the start of every verb would wait for
# scipy.special
import scipy
from numpy.typing import NDArray

Column = NDArray[Any]
Columns = Mapping[str, Column]
SHOWN = 5
"""Rows named in a message; the count says how many there are."""
_BLOCK = 4_000_000
"""Most numbers that are turned into bytes at once."""


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
    """Share of the earlier table's rows that have a twin inside it: what data of this kind does by
    itself."""
    expected: float
    """The most of `share` that the later table's own twins explain: see `expected_share`."""


def shared_rows(earlier: Columns, later: Columns, inputs: Sequence[str], label: str) -> Shared:
    """Compare all rows by `inputs`; both tables hold these columns and `label`, each of shape (n,
    ...), n >= 1."""
    before, after = row_hashes(earlier, inputs), row_hashes(later, inputs)
    first: dict[bytes, int] = {}
    for row, key in enumerate(before):
        first.setdefault(key, row)
    rows = tuple(row for row, key in enumerate(after) if key in first)
    answers = set(zip(before, row_hashes(earlier, [label]), strict=True))
    given = row_hashes(later, [label])
    counts, own = Counter(before), Counter(after)
    pairs = sum(count * (count - 1) // 2 for count in own.values())
    return Shared(
        rows=rows,
        first=tuple(first[after[row]] for row in rows),
        with_label=sum((after[row], given[row]) in answers for row in rows),
        share=len(rows) / len(after),
        repeats=sum(count for count in counts.values() if count > 1) / len(before),
        expected=expected_share(pairs, len(after), len(first)),
    )


def expected_share(pairs: int, rows: int, distinct: int) -> float:
    """The most that two independent drawings of one kind of data share, as the later one's own
    coincidences tell.

    `pairs` of its `rows` rows are alike, so two rows are with a probability of at most q, the
    Poisson upper bound of the pairs at 97.5% over all pairs. Rows of the probabilities p_k then
    fall on `distinct` known ones with a chance of sum p_k <= sqrt(distinct * sum p_k^2) =
    sqrt(distinct * q) (Cauchy and Schwarz). Repeating the known rows does not raise it. 1 for a
    single row, which tells nothing.
    """
    if rows < 2:
        return 1.0
    most = float(scipy.special.gammaincinv(pairs + 1, 0.975))
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
    flat = array.reshape(len(array), -1)
    if array.dtype.kind in "biuf":
        numbers = np.ascontiguousarray(flat, dtype="<f8") + 0.0  # -0.0 is 0.0
        return [row.tobytes() for row in numbers]
    return ["\x1f".join(map(str, row)).encode("utf-8", "surrogatepass") for row in flat.tolist()]
