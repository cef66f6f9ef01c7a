"""Tables with a header: Lightning's metrics.csv, YOLO's results.csv, TSV lists of experiments."""

import csv
import re
from collections.abc import Iterable, Sequence

from harness.domain.words import some
from harness.foreign.json_lines import CRASHES
from harness.foreign.log_rows import Row, as_number, make_row, position, tagged
from harness.foreign.names import Kind, is_position, meaning, words
from harness.foreign.parser import LineParser, LogHead, LogParser
from harness.foreign.printed_values import values

_MOST_JOINED = 200
_MOST_CELLS = 50_000
_LONGEST_NAME = 120
_DECIMAL_COMMA = re.compile(r"([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)")
_MISSING = frozenset(
    {"", "na", "n/a", "#n/a", "none", "null", "nil", "-", "--", "---", "?", ".", "missing"}
)
_DELIMITERS = ("\t", ",", ";")
_MONITOR = ["r", "l", "t"]
"""Columns of the Monitor of Gym, Baselines and Stable-Baselines3: one row an episode."""


def recognise(head: LogHead) -> LogParser | None:
    """By the first lines: a header of names above a row of as many cells, or rows of numbers."""
    lines = _without_comments(head)
    text = lines[0].decode("utf-8", "replace")
    under = lines[1].decode("utf-8", "replace") if len(lines) > 1 else None
    for delimiter in _DELIMITERS:
        cells = _parted(text, delimiter)
        if len(cells) < 2:
            continue
        if all(_is_number(cell, delimiter) for cell in cells):
            return TableLog(delimiter)
        if _is_header(cells) and _fits(under, cells, delimiter):
            return TableLog(delimiter, tag=head.path.stem.partition("-tag-")[2])
    return None


def may_be_header(head: LogHead) -> bool:
    """Whether the next line decides: of a text that is all there is, it may be the header."""
    lines = _without_comments(head)
    text = lines[0].decode("utf-8", "replace")
    cells = (_parted(text, delimiter) for delimiter in _DELIMITERS)
    return len(lines) < 2 and any(_is_header(each) for each in cells)


def _without_comments(head: LogHead) -> list[bytes]:
    lines = [line.strip(b"\r\0") for line in head.lines or [head.first]]
    kept = [line for line in lines if not line.lstrip().startswith(b"#")]
    return kept or lines[:1]


def _parted(
    text: str,
    delimiter: str,
) -> list[str]:
    return [cell.strip().strip('"') for cell in text.split(delimiter)]


def _is_number(
    cell: str,
    delimiter: str,
) -> bool:
    return as_number(plain_cell(cell, delimiter)) is not None


def _is_header(cells: Sequence[str]) -> bool:
    """Whether they can be names, in any characters."""
    named = [cell for cell in cells if cell]
    if len(named) < 2 or any(len(cell) > _LONGEST_NAME for cell in named):
        return False
    if named[0].startswith(("{", "[{")) or named[0].endswith(":"):
        return False  # JSON, or a printed setting: "batch_size :\t20"
    return not any(as_number(cell) is not None for cell in named)


def _fits(
    line: str | None,
    cells: Sequence[str],
    delimiter: str,
) -> bool:
    """Whether the line below the header is a row: it has a number or a missing value for a cell."""
    if line is None:
        return not any(True for _ in values(delimiter.join(cells)))
    if delimiter != "\t" and line.count('"') % 2:
        return True  # a quoted cell goes on in the next line
    parts = _parted(line, delimiter)
    if len(parts) < 2 or len(parts) < len(cells) - 1:
        return False
    known = [part for part in parts if _is_number(part, delimiter)]
    return bool(known) or list(cells) == parts


class TableLog(LineParser):
    """Rows by the names of the header. An empty cell, or one that says so, is missing, not zero.

    A line with fewer cells than the header comes from a line break in a cell: it is counted and
    left out. A header within the table, in any order, with more or fewer names, counts from there
    on. A table without a counter is a ledger: one row for each experiment.
    """

    def __init__(self, delimiter: str, *, tag: str = "") -> None:
        super().__init__()
        self._tag = tag
        """What the file's name says that its values are, as TensorBoard's download does."""
        self.name = {"\t": "TSV", ",": "CSV", ";": "CSV"}[delimiter]
        self._short = 0
        """Lines with fewer cells than the header."""
        self._crashed = 0
        """Experiments of a ledger that crashed: their numbers mean nothing."""
        self._delimiter = delimiter
        self._header: list[str] | None = None
        self._counts = ""
        """What the rows count where no column says it."""
        self._is_long = False
        """Whether each row holds one value, and its name."""
        self._open: list[str] = []
        self._comment = ""
        self._row = 0
        self._began: float | None = None
        self._again = False
        self._words: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        """Column -> how many words and numbers: that of a commit has words, though 8030e3 may pass
        for a float; a single word among numbers is a missing value."""

    def notes(self) -> list[str]:
        notes = super().notes() if self.number > 1 else []
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
        if text.count(self._delimiter) >= _MOST_CELLS:
            self.warnings.add(
                f"line {self.number} has {_MOST_CELLS:,} cells or more; it was left out"
            )
            return []
        if not text.strip() and not self._open:
            return []
        if text.startswith("#") and not self._open:
            self._comment = text.lstrip("# ")
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
            return next(
                csv.reader([joined], delimiter=self._delimiter),
                [],
            )
        except csv.Error:
            return joined.split(self._delimiter)

    def _begin(
        self,
        cells: Sequence[str],
    ) -> Iterable[Row]:
        named = [cell.strip() for cell in cells]
        if all(as_number(plain_cell(cell, self._delimiter)) is not None for cell in named):
            # numpy writes the header as a comment.
            said = _parted(self._comment, self._delimiter)
            if len(said) == len(named):
                self._name(said)
            else:
                self._header = [f"column {index}" for index in range(1, len(named) + 1)]
            return self._values(cells, self._header or [])
        self._name(named)
        return []

    def _name(self, named: Sequence[str]) -> None:
        self._header = [name or f"column {index}" for index, name in enumerate(named, start=1)]
        if self._tag:
            self._header = [self._tag if name == "Value" else name for name in self._header]
        self._is_long = "value" in [name.lower() for name in self._header]
        if any(is_position(name) for name in self._header):
            return
        if named[: len(_MONITOR)] == _MONITOR:
            self._counts = "episode"
            return
        self.is_ledger = True

    def _is_of_trials(self, place: float | None) -> bool:
        """Whether rows with words stand at one place of an axis, as experiments of one size do."""
        kinds = {meaning(name).kind for name in self._header or ()}
        placed = not kinds.isdisjoint((Kind.POSITION, Kind.EPOCH))
        return not placed and place == self._began and len(self._words) > 1

    def _values(
        self,
        cells: Sequence[str],
        header: Sequence[str],
    ) -> Iterable[Row]:
        if self._is_header_again(cells, header):
            return []
        if len(cells) < len(header):
            self._short += 1
            if self._short == 1:
                self.warnings.add(
                    f"line {self.number} has {len(cells)} of {len(header)} cells; such lines are"
                    " left out"
                )
            return []
        if len(cells) > len(header):
            # After a resume rows may have more cells than the header has names.
            more = range(len(header) + 1, len(cells) + 1)
            header = [*header, *(f"column {index}" for index in more)]
        texts = [plain_cell(cell, self._delimiter) for cell in cells]
        filled = [
            (name, cell)
            for name, cell in zip(header, texts, strict=False)
            if cell.lower() not in _MISSING
        ]
        if self.is_ledger and any(cell.lower() in CRASHES for _, cell in filled):
            self._crashed += 1
            return []
        pairs = tagged(filled) if self._is_long else filled
        row = make_row((name, cell) for name, cell in pairs if self._is_value(name, cell))
        return [] if row is None else self._placed(row)

    def _is_header_again(
        self,
        cells: Sequence[str],
        header: Sequence[str],
    ) -> bool:
        """Whether the line is a header; its names then count from here on."""
        named = [cell.strip() for cell in cells]
        if any(as_number(cell) is not None for cell in named):
            return False
        common = len(set(named) & set(header))
        if common < 2 or 2 * common < min(len(named), len(header)):
            return False
        self._header = [name or f"column {index}" for index, name in enumerate(named, start=1)]
        self._row, self._again = 0, True
        return True

    def _is_value(
        self,
        name: str,
        cell: str,
    ) -> bool:
        """Whether a cell is a number in a column of numbers."""
        counts = self._words if as_number(cell) is None else self._numbers
        counts[name] = counts.get(name, 0) + 1
        if counts is self._words:
            # A time is a word, and a value.
            return words(name) in ("time", "timestamp", "date", "datetime", "t")
        return self._words.get(name, 0) <= self._numbers[name]

    def _placed(self, row: Row) -> list[Row]:
        if not (self.is_ledger or self._counts) and self._began is not None:
            self.is_ledger = self._is_of_trials(position(row))
            self._row = int(self._began) + 1 if self.is_ledger else self._row
        if self.is_ledger or self._counts:
            row.pop("unit", None)
            row["step"], self._row = self._row, self._row + 1
            if self._counts:
                row["unit"] = self._counts
        place = position(row)
        # Below a header that is repeated another run begins, unless its counter goes on.
        again, self._again = self._again, False
        starts = again and (place is None or self._began is None or place <= self._began)
        if self._began is None or starts:
            self._began = place
        return [{"event": "start"}, row] if starts else [row]


def plain_cell(
    text: str,
    delimiter: str,
) -> str:
    """`text` with a decimal point: where ";" separates the cells, a lone comma is one."""
    text = text.strip()
    lone = _DECIMAL_COMMA.fullmatch(text) if delimiter == ";" else None
    return f"{lone[1]}.{lone[2]}" if lone else text.removesuffix("%").rstrip()
