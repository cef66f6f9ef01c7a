"""Texts that are nearly the same in two tables, by MinHash (Broder 1997), through datasketch.

A text is the set of its SHINGLE-character pieces, in lower case with single spaces. Two texts are
near-duplicates when the Jaccard similarity of their sets is at least SIMILAR; MinHash only proposes
the pairs, the similarity is then computed. 0.8 and character or word pieces are what Lee et al.
("Deduplicating training data makes language models better", 2022) and The Pile use.
"""

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.plans.data_rows import Column

SIMILAR = 0.8
SHINGLE = 5
LEAST_CHARACTERS = 20
"""Of a column's mean length: shorter texts are names and categories, which repeat."""
MOST_TEXTS = 10_000
"""Of each table, evenly spread: about 0.3 ms a text."""
_LONGEST = 5_000
"""Characters of a text that are read."""
_PERMUTATIONS = 128


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
    """Compare two columns of texts, shape (n,) each; texts that are equal count too.
    Deterministic."""
    datasketch = importlib.import_module(
        "datasketch"
    )  # half a second with scipy, and only where there are texts
    index = datasketch.MinHashLSH(threshold=SIMILAR, num_perm=_PERMUTATIONS)
    known = dict(_pieces(earlier))
    for row, pieces in known.items():
        index.insert(row, _sketch(datasketch, pieces))
    rows, first, looked_at = [], [], 0
    for row, pieces in _pieces(later):
        looked_at += 1
        near = [
            other
            for other in sorted(index.query(_sketch(datasketch, pieces)))
            if _alike(pieces, known[other])
        ]
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
            yield (
                row,
                frozenset(
                    text[start : start + SHINGLE] for start in range(len(text) - SHINGLE + 1)
                ),
            )


def _sketch(datasketch: Any, pieces: frozenset[str]) -> Any:
    sketch = datasketch.MinHash(num_perm=_PERMUTATIONS, seed=1)
    sketch.update_batch([piece.encode("utf-8", "surrogatepass") for piece in sorted(pieces)])
    return sketch


def _alike(first: frozenset[str], second: frozenset[str]) -> bool:
    return len(first & second) >= SIMILAR * len(first | second)


def text_columns(inputs: Sequence[str], columns: dict[str, Column]) -> list[str]:
    return [name for name in inputs if is_text(columns[name])]
