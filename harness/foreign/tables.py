"""Tables with a header: Lightning's metrics.csv, YOLO's results.csv, ledgers of experiments in TSV,
ragged ones too."""

import csv
import re
from collections.abc import Iterable, Sequence

from harness.foreign.lines import LineParser
from harness.foreign.rows import COUNTERS, Row, as_number, make_row

_MOST_JOINED = 200
_DECIMAL_COMMA = re.compile(r"([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)")
_CRASHES = frozenset({"crash", "crashed", "failed", "error"})


class Table(LineParser):
    """Rows by the names of the header. A cell that is empty is missing, not zero.

    Lines with fewer cells than the header are what a line break inside a cell leaves: they are
    counted and left out. Where ";" parts the cells, a lone comma is the decimal point. The header
    once more starts another run. A table without a counter is a ledger: one row an experiment.
    """

    def __init__(self, delimiter: str) -> None:
        super().__init__()
        self.name = {"\t": "TSV", ",": "CSV", ";": "CSV"}[delimiter]
        self.is_ledger = False
        self.short = 0
        """Lines with fewer cells than the header."""
        self.crashed = 0
        """Experiments of a ledger that crashed: the numbers beside that word are none."""
        self._delimiter = delimiter
        self._header: list[str] | None = None
        self._open: list[str] = []
        self._row = 0
        self._texts: set[str] = set()
        """Columns that held a word: a commit such as 8030e3 is no number either."""

    def line(self, raw: bytes) -> Iterable[Row]:
        text = self.text(raw).rstrip("\r")
        if not text.strip() and not self._open:
            return []
        cells = self._cells(text)
        if cells is None:
            return []
        if self._header is None:
            return self._begin(cells)
        return self._values(cells, self._header)

    def last(self, raw: bytes) -> Iterable[Row]:
        """A last line without its end counts when it has all cells: a torn one would be a wrong
        number."""
        if self._header is None or self.text(raw).count(self._delimiter) + 1 < len(self._header):
            return []
        return self.line(raw)

    def _cells(self, text: str) -> list[str] | None:
        """None while a quoted cell goes on in the next line; in TSV a quote is a character like any
        other."""
        if self._delimiter == "\t":
            return text.split("\t")
        self._open.append(text)
        joined = "\n".join(self._open)
        if joined.count('"') % 2 and len(self._open) < _MOST_JOINED:
            return None
        self._open = []
        try:
            return next(csv.reader([joined], delimiter=self._delimiter), [])
        except csv.Error:
            return joined.split(self._delimiter)

    def _begin(self, cells: Sequence[str]) -> Iterable[Row]:
        named = [cell.strip() for cell in cells]
        if all(as_number(plain_cell(cell, self._delimiter)) is not None for cell in named):
            self._header = [f"column {index}" for index in range(1, len(named) + 1)]
            return self._values(cells, self._header)
        self._header = [name or f"column {index}" for index, name in enumerate(named, start=1)]
        self.is_ledger = not any(name.lower() in COUNTERS for name in self._header)
        return []

    def _values(self, cells: Sequence[str], header: Sequence[str]) -> Iterable[Row]:
        if [cell.strip() for cell in cells] == list(header):
            self._row = 0
            return [{"event": "start"}]
        if len(cells) < len(header):
            self.short += 1
            if self.short == 1:
                self.warnings.add(
                    f"line {self.number} has {len(cells)} of {len(header)} cells; such lines are"
                    " left out"
                )
            return []
        texts = [plain_cell(cell, self._delimiter) for cell in cells]
        filled = [(name, cell) for name, cell in zip(header, texts, strict=False) if cell]
        if self.is_ledger and any(cell.lower() in _CRASHES for _, cell in filled):
            self.crashed += 1
            return []
        self._texts |= {name for name, cell in filled if as_number(cell) is None}
        row = make_row((name, cell) for name, cell in filled if name not in self._texts)
        if row is None:
            return []
        if self.is_ledger:
            row["step"], self._row = self._row, self._row + 1
        return [row]


def plain_cell(text: str, delimiter: str) -> str:
    """`text` with a decimal point: where ";" parts the cells, a lone comma is one."""
    text = text.strip()
    lone = _DECIMAL_COMMA.fullmatch(text) if delimiter == ";" else None
    return f"{lone[1]}.{lone[2]}" if lone else text
