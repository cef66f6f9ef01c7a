"""Tables with a header: Lightning's metrics.csv, YOLO's results.csv, TSV lists of experiments."""

import csv
import re
from collections.abc import Iterable, Sequence

from harness.domain.words import some
from harness.foreign.log_rows import COUNTERS, Row, as_number, make_row
from harness.foreign.parser import LineParser, LogHead, LogParser

_MOST_JOINED = 200
_NAME = re.compile(r"[A-Za-z_][\w ./()@%-]*\Z")
_DECIMAL_COMMA = re.compile(r"([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)")
_CRASHES = frozenset({"crash", "crashed", "failed", "error"})


def recognise(head: LogHead) -> LogParser | None:
    """By the first line: a header of names or a row of numbers."""
    if head.first.startswith(b"{"):
        return None
    text = head.first.decode("utf-8", "replace")
    for delimiter in ("\t", ",", ";"):
        cells = [cell.strip().strip('"') for cell in text.split(delimiter)]
        if len(cells) < 2:
            continue
        if all(as_number(plain_cell(cell, delimiter)) is not None for cell in cells):
            return TableLog(delimiter)
        if (
            all(_NAME.match(cell) and len(cell) <= 80 for cell in cells if cell)
            and sum(map(bool, cells)) > 1
        ):
            return TableLog(delimiter)
    return None


class TableLog(LineParser):
    """Rows by the names of the header. An empty cell is missing, not zero.

    A line with fewer cells than the header comes from a line break in a cell: it is counted and
    left out. A repeated header starts another run. A table without a counter is a ledger: one row
    for each experiment.
    """

    def __init__(self, delimiter: str) -> None:
        super().__init__()
        self.name = {"\t": "TSV", ",": "CSV", ";": "CSV"}[delimiter]
        self._short = 0
        """Lines with fewer cells than the header."""
        self._crashed = 0
        """Experiments of a ledger that crashed: their numbers mean nothing."""
        self._delimiter = delimiter
        self._header: list[str] | None = None
        self._open: list[str] = []
        self._row = 0
        self._texts: set[str] = set()
        """Columns that held a word: their numbers are none, e.g. the commit 8030e3 is no float."""

    def notes(self) -> list[str]:
        notes = []
        if self._short > 1:
            notes.append(f"{self._short} lines have fewer cells than the header")
        if self._crashed:
            notes.append(
                f"{some(self._crashed, 'experiment')} crashed: the numbers beside that word are"
                " left out"
            )
        return notes

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
        """A last line without its end counts only with all cells: a torn number is wrong."""
        if self._header is None or self.text(raw).count(self._delimiter) + 1 < len(self._header):
            return []
        return self.line(raw)

    def _cells(self, text: str) -> list[str] | None:
        """None while a quoted cell goes on in the next line."""
        # In TSV a quote has no meaning. An odd number of quotes may also be damage: after
        # _MOST_JOINED lines it is taken for that, so that one quote does not swallow the file.
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
            self._short += 1
            if self._short == 1:
                self.warnings.add(
                    f"line {self.number} has {len(cells)} of {len(header)} cells; such lines are"
                    " left out"
                )
            return []
        texts = [plain_cell(cell, self._delimiter) for cell in cells]
        filled = [(name, cell) for name, cell in zip(header, texts, strict=False) if cell]
        if self.is_ledger and any(cell.lower() in _CRASHES for _, cell in filled):
            self._crashed += 1
            return []
        self._texts |= {name for name, cell in filled if as_number(cell) is None}
        row = make_row((name, cell) for name, cell in filled if name not in self._texts)
        if row is None:
            return []
        if self.is_ledger:
            row["step"], self._row = self._row, self._row + 1
        return [row]


def plain_cell(text: str, delimiter: str) -> str:
    """`text` with a decimal point: where ";" separates the cells, a lone comma is one."""
    text = text.strip()
    lone = _DECIMAL_COMMA.fullmatch(text) if delimiter == ";" else None
    return f"{lone[1]}.{lone[2]}" if lone else text
