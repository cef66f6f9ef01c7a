"""Tables as lines no wider than a terminal. Words are not broken to fit: where the columns do not
fit beside each other, each row is a paragraph of its own."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.domain.late import later

if TYPE_CHECKING:
    from rich import cells as rich_cells
else:  # Latin text needs no table of widths
    rich_cells = later("rich.cells")

_GAP = 2
_LEAST = 20
"""Characters of a column of text that is wrapped."""
_LONG_WORD = 32
_LATIN = "\u02ff"
"""Up to here a printed character takes one column."""
_WORD = re.compile(r"\s*\S+")
_PIECE = re.compile(r"\s*(?:[^\s`]*`[^`]+`\S*|\S+)")
"""With what stands before it: a word, or a command with the signs around it."""
_NAME = re.compile(r"\s*\S+\s{2,}")

Lines = list[list[str]]
"""One table row: the lines of each cell."""


def table_lines(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> Iterator[list[tuple[str, int]]]:
    """For each line its cells with the width that each takes; `columns` empty: no head. A line of
    one cell stands alone."""
    natural = _natural(columns, rows)
    widths = _fitting(natural, [*zip(*rows, strict=True)], width)
    if widths is None:
        yield from _paragraphs(columns, rows, width)
        return
    for cells in [columns, *rows] if columns else rows:
        parts = [_wrapped(text, room) or [""] for text, room in zip(cells, widths, strict=True)]
        for number in range(max(map(len, parts))):
            yield [
                (part[number] if number < len(part) else "", room)
                for part, room in zip(parts, widths, strict=True)
            ]


def broken(line: str, width: int) -> Iterator[str]:
    """A line as lines of at most `width`, broken between words; a command in backticks, which is
    to be copied, and a long path stay whole. What follows stands below what it goes on from: the
    text behind the first gap, else a little to the right."""
    if cell_width(line) <= width:
        yield line
        return
    gap = _NAME.match(line)
    inner = cell_width(gap[0]) if gap else len(line) - len(line.lstrip()) + 2
    text = ""
    for spaced in _PIECE.findall(line):
        if text.strip() and cell_width(text + spaced) > width:
            yield text
            text = " " * inner + spaced.lstrip()
        else:
            text += spaced
    yield text


def padded(text: str, room: int) -> str:
    return text + " " * max(0, room - cell_width(text))


def cell_width(text: str) -> int:
    """Columns of a terminal that it takes."""
    latin = max(text, default="") <= _LATIN
    return len(text) if latin else rich_cells.cell_len(text)


def _natural(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    every = [*([columns] if columns else []), *rows]
    return [max(map(cell_width, column)) for column in zip(*every, strict=True)]


def _fitting(
    natural: Sequence[int], columns: Sequence[Sequence[str]], width: int
) -> list[int] | None:
    """The width of each column, where only long texts are wrapped; None where that does not do."""
    left = width - 1 - _GAP * (len(natural) - 1)
    if sum(natural) <= left:
        return list(natural)
    least = [
        min(most, max(_LEAST, _longest_word(column)))
        for most, column in zip(natural, columns, strict=True)
    ]
    spare = left - sum(least)
    if spare < 0:
        return None
    for place in sorted(range(len(natural)), key=lambda place: natural[place]):
        more = min(spare, natural[place] - least[place])
        least[place], spare = least[place] + more, spare - more
    return least


def _longest_word(column: Sequence[str]) -> int:
    words = (cell_width(word) for text in column for word in text.split())
    return min(_LONG_WORD, max(words, default=0))


def _paragraphs(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> Iterator[list[tuple[str, int]]]:
    room = width - 4
    for first, *others in rows:
        for line in _wrapped(first, width - 2):
            yield [(line, 0)]
        line = ""
        names = columns[1:] or [""] * len(others)
        for name, text in zip(names, others, strict=True):
            item = f"{name} {text}".strip()
            if text in ("", "-"):
                continue
            if line and cell_width(line) + _GAP + cell_width(item) > room:
                yield [(f"  {line}", 0)]
                line = ""
            line = f"{line}{' ' * _GAP if line else ''}{item}"
            if cell_width(line) > room:
                yield from ([(f"  {part}", 0)] for part in _wrapped(line, room))
                line = ""
        if line:
            yield [(f"  {line}", 0)]


def _wrapped(text: str, room: int) -> list[str]:
    if cell_width(text) <= room:
        return [text] if text else []
    lines: list[str] = []
    for spaced in _WORD.findall(text):
        word = spaced.lstrip()
        if lines and cell_width(lines[-1] + spaced) <= room:
            lines[-1] += spaced
        elif cell_width(word) <= room:
            lines.append(word)
        else:
            lines += rich_cells.chop_cells(word, room)
    return lines
