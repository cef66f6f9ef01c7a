"""Texts of a secret table inside other texts: by runs of words, whatever stands around them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from harness.plans.contamination import Columns, is_text

WORDS = 8
"""In one run."""
_WORD = re.compile(rb"[a-z0-9\x80-\xff]+")
_A_TEXT = 6
"""Runs of a text that are looked for."""
_ESCAPED = re.compile(rb"\\(?:[nrt]|u[0-9a-f]{4})")


@dataclass(frozen=True, kw_only=True)
class Texts:
    runs: dict[tuple[bytes, ...], tuple[int, ...]]
    """Run of words -> rows that have it."""
    wanted: dict[int, int]
    """Row -> how many of its runs are looked for."""

    @classmethod
    def of(
        cls,
        columns: Columns,
        inputs: Sequence[str],
        known: Sequence[Columns],
        rows: NDArray[Any],
    ) -> "Texts":
        """The runs of words of each row that no known table has."""
        names = [name for name in inputs if is_text(columns[name])]
        used = {
            run
            for table in known
            for name in names
            if name in table
            for text in table[name].tolist()
            for run in _runs(_words(str(text).encode("utf-8", "replace")))
        }
        runs: dict[tuple[bytes, ...], list[int]] = {}
        wanted: dict[int, int] = {}
        for row in rows.tolist() if names else []:
            own = {
                run: None
                for name in names
                for run in _runs(_words(str(columns[name][row]).encode("utf-8", "replace")))
                if run not in used
            }
            step = max(1, len(own) // _A_TEXT)
            chosen = list(own)[::step]
            if chosen:
                wanted[row] = len(chosen)
            for run in chosen:
                runs.setdefault(run, []).append(row)
        return cls(runs={run: tuple(found) for run, found in runs.items()}, wanted=wanted)

    def found(self, data: bytes) -> frozenset[int]:
        """Rows of which most runs stand in `data`."""
        if not self.runs:
            return frozenset()
        counts: dict[int, int] = {}
        for run in set(_runs(_words(data))) & self.runs.keys():
            for row in self.runs[run]:
                counts[row] = counts.get(row, 0) + 1
        return frozenset(row for row, count in counts.items() if 2 * count > self.wanted[row])


def _words(data: bytes) -> list[bytes]:
    return _WORD.findall(_ESCAPED.sub(b" ", data.lower()))


def _runs(words: list[bytes]) -> "zip[tuple[bytes, ...]]":
    return zip(*(words[start:] for start in range(WORDS)), strict=False)
