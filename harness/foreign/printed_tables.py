"""Tables that programs print: a header with rows below it, or a name and a value in each row."""

import re
from collections.abc import Sequence
from typing import Any

from harness.foreign.log_rows import as_number
from harness.foreign.names import is_position
from harness.foreign.printed_values import in_units

_APART = re.compile(r"\s{2,}|\t|\s*\|\s*")
_BAR = re.compile(r"\d+%\|[^|]*\|\s*(\d+)/(\d+)")
_CELL = re.compile(r"([-+]?[\d.,]*\d(?:e[-+]?\d+)?|nan|[-+]?inf)([a-z%]*)[:,)]?\Z", re.IGNORECASE)
_OF = re.compile(r"(\d+)/(\d+)\Z")
_KEY_VALUE = re.compile(r"\|(\s*\S.*?)\s*\|\s*(\S*)\s*\|\s*\Z")
_NAMES = {"e": "epoch", "#": "step", "it.": "iteration", "ep.": "epoch"}
_YOLO = re.compile(r"\s*Class\s+Images\s")
_FIRST = re.compile(r"\|?\s*([^\s|]+)( [^\s|]+)?")
_COUNTS = ("Images", "Instances", "Labels")
_WORDS = re.compile(r"[A-Za-z_][\w/.-]*")

Pairs = list[tuple[str, Any]]


def key_value(line: str) -> tuple[str, str] | None:
    """(name, value) of "|    ep_rew_mean    | 22.8     |"; the value of a section is empty."""
    match = _KEY_VALUE.match(
        line.replace("│", "|").replace("┃", "|"),
    )
    if match is None or "|" in match[1] or as_number(match[1]) is not None:
        return None
    if match[2] and as_number(match[2]) is None:
        return None
    return match[1][1:], match[2]


class PrintedTable:
    """The header that was printed last."""

    def __init__(
        self,
        names: Sequence[str],
        *,
        words: bool,
        scores: bool = False,
    ) -> None:
        self._names = list(names)
        self._words = words
        """Whether blanks part the cells, not two of them or a line."""
        self._scores = scores
        """Whether its rows name what they are of, as YOLO's "all", not where they stand."""

    def row(self, line: str) -> Pairs | None:
        """(name, value) of each cell that is a number; None when the line is no row."""
        bar = _BAR.search(line)
        if bar is not None and bar[1] != bar[2]:
            return [] if self.row(line.replace(bar[0], "")) else None
        cells = _cells(line) if not self._words else line.split()
        if self._scores:
            if not cells or cells[0] != "all":
                return None
            return [pair for pair in self._pairs(cells) if pair[0] not in _COUNTS]
        fits = len(cells) == len(self._names)
        fits |= bar is not None and len(cells) > len(self._names)
        if not fits or not _is_place(cells[0]):
            return None
        return self._pairs(cells)

    def _pairs(self, cells: Sequence[str]) -> Pairs:
        pairs: Pairs = []
        for name, cell in zip(self._names, cells, strict=False):
            part = _OF.match(cell)
            if part is not None and is_position(name):
                pairs += [(name, part[1]), (f"total_{name.lower()}s", part[2])]
                continue
            match = _CELL.match(cell)
            number = as_number(match[1]) if match else None
            if match is not None and number is not None:
                value = in_units(name, number, match[2])
                pairs += [value] if value is not None else []
        return pairs


def header(line: str) -> PrintedTable | None:
    """The table that begins with this line; None when it is no header."""
    if _YOLO.match(line):
        said = [word.strip("():") for word in line.split()]
        names = [word.replace("Box(P", "P") for word in said][:9]
        return PrintedTable(names, words=True, scores=True)
    text = line.replace("│", "|").replace("┃", "|").strip().lstrip("# ")
    first = _FIRST.match(text)
    starts = () if first is None else (first[1], f"{first[1]}{first[2]}")
    if not any(is_position(_NAMES.get(name.lower(), name)) for name in starts):
        return None
    for words, cells in ((False, _cells(text)), (True, text.split())):
        named = [_NAMES.get(cell.lower(), cell) for cell in cells]
        if len(named) < 2 or not is_position(named[0]):
            continue
        if words and not all(_WORDS.fullmatch(name) for name in named):
            continue
        if not any(as_number(name) is not None for name in named):
            return PrintedTable(
                named,
                words=words or "|" not in text,
            )
    return None


def _cells(line: str) -> list[str]:
    text = line.replace("│", "|").replace("┃", "|").strip().strip("|").strip()
    return [cell for cell in _APART.split(text) if cell]


def _is_place(cell: str) -> bool:
    return _OF.match(cell) is not None or as_number(cell) is not None
