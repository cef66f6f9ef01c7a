"""A Markdown text as sentences, each with its line and its surroundings."""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from html import unescape
from typing import Any

from harness.claims.figures import normalise
from harness.claims.readable import joined_number, readable, with_footnotes
from harness.claims.vocabulary import EXPERIMENT
from harness.domain.plain_text import plain

_POINTER = re.compile(r"(?:docs/)?(evidence/[\w.-]+\.json)|(bench/[\w./-]+\.py)")
# A sign that ends a sentence, then white space and a capital, quote or bracket: not `0.93 e.g. by`.
_SENTENCE_END = re.compile(
    r"(?<!e\.g)(?<!i\.e)(?<!approx)(?<!vs)(?<!et al\.)(?<=[.!?])\s+(?=[A-Z\"`(\[]|$)"
)
_LONGEST = 2000
_NAME = 60
"""Characters at most of a line that names the number below it."""
_ONLY_A_NUMBER = re.compile(r"[\s~≈=:]*\d*[.,]?\d+(?:/\d+)?\s*(?:%|percent)?[\s.!]*")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")
# The line below a table's head: `|---|:--:|`.
_RULE = re.compile(r"\s*\|?[\s:|-]*-[\s:|-]*\|?\s*")


@dataclass(frozen=True, kw_only=True)
class Sentence:
    line: int
    """Line of the document, from 1, where `text` begins."""
    text: str
    """On one line. For a table cell: the row's and column's heads, then the cell."""
    first: int = 0
    """Numbers before this position belong to the row and column heads."""
    breaks: tuple[int, ...] = ()
    """Positions in `text` where the next lines of the document begin."""
    experiment: str | None = None
    """The experiment that the file or the heading is about."""
    around: str = ""
    """The whole block: the word `measured` may be anywhere in it."""
    pointers: frozenset[str] = frozenset()
    """Evidence files that the sentence names, else its block, else its section; all programs."""
    report: bool = False

    def line_of(self, place: int) -> int:
        return self.line + sum(start <= place for start in self.breaks)


@dataclass
class _Block:
    line: int
    lines: list[str] = field(default_factory=list)
    kind: str = "text"


def sentences(
    text: str, *, experiment: str | None = None, report: bool = False, quotes: bool = False
) -> list[Sentence]:
    """The sentences of a Markdown text that may hold claims.

    `experiment`: what the file is about. A `report` is read with its fences of plain output.
    `quotes`: read quotations too, as in the decision log, which quotes its decisions.
    """
    lines = [
        normalise(readable(plain(unescape(line)).replace("\n", " ")))
        for line in with_footnotes(without_comments(_without_front_matter(plain(text)))).split(
            "\n"
        )
    ]
    sections = list(_sections(lines))
    result: list[Sentence] = []
    before: _Block | None = None
    for block in _blocks(lines, report=report, quotes=quotes):
        if not block.lines:
            continue
        before, block = block, _with_its_name(before, block)
        about, named = sections[block.line - 1]
        around = " ".join(block.lines)
        shared = {"experiment": about or experiment, "around": around, "report": report}
        made = _cells(block, shared) if block.kind == "table" else _of_text(block, shared)
        result += (
            replace(sentence, pointers=_nearest(sentence.pointers, pointers(around), named))
            for sentence in made
        )
    return result


def _with_its_name(before: _Block | None, block: _Block) -> _Block:
    """A paragraph that is only a number, with the words of the one before that it belongs to."""
    alone = len(block.lines) == 1 and _ONLY_A_NUMBER.fullmatch(block.lines[0])
    if not alone or before is None or before.kind != "text" or len(before.lines[-1]) > _NAME:
        return block
    name = before.lines[-1].strip().rstrip(":=")
    if not name or name[-1] in ".!?;,":
        return block
    return _Block(block.line, [f"{name}: {block.lines[0].strip()}"])


def _nearest(*named: Set[str]) -> frozenset[str]:
    """The evidence files of the first set that has any, and the programs of all sets."""
    files = ({name for name in names if name.endswith(".json")} for names in named)
    programs = {name for names in named for name in names if name.endswith(".py")}
    return frozenset(
        next((files_of_one for files_of_one in files if files_of_one), set()) | programs
    )


def pointers(text: str) -> set[str]:
    """Evidence files and programs in bench/ that `text` names, relative to the root."""
    return {f"docs/{match[1]}" if match[1] else match[2] for match in _POINTER.finditer(text)}


def without_pointers(text: str) -> str:
    """`text` with these names blanked, same length: a file name describes no figure."""
    return _POINTER.sub(lambda match: " " * len(match.group()), text)


def _without_front_matter(text: str) -> str:
    """The text with its front matter as empty lines: line numbers stay the same."""
    match = re.match(r"\A---\n.*?\n---[ \t]*(?=\n|\Z)", text, re.S)
    return text if match is None else "\n" * match.group().count("\n") + text[match.end() :]


def _sections(lines: list[str]) -> Iterator[tuple[str | None, set[str]]]:
    """For each line: the experiment of its heading, and the pointers of its section."""
    starts = [index for index, line in enumerate(lines) if _HEADING.match(line)]
    for begin, end in zip([0, *starts], [*starts, len(lines)], strict=True):
        part = lines[begin:end]
        heading = _HEADING.match(part[0]) if part else None
        about = EXPERIMENT.findall(heading[2]) if heading else []
        named = pointers("\n".join(part))
        yield from ((about[0] if len(about) == 1 else None, named) for _ in part)


def _blocks(lines: list[str], *, report: bool, quotes: bool) -> Iterator[_Block]:
    block, fence, kept = _Block(1), "", False
    for number, line in enumerate(lines, 1):
        if fence:
            if line.strip().startswith(fence):
                fence = ""
            elif kept:
                yield _Block(number, [line])
            continue
        if opened := re.match(r"\s*(```+|~~~+)\s*(\w*)", line):
            yield block
            fence, kept = (
                opened[1],
                report and opened[2].lower() in ("", "text", "output", "console", "txt"),
            )
            block = _Block(number + 1)
            continue
        kind = _kind(line, report=report, quotes=quotes)
        if kind in ("none", "heading", "item") or kind != block.kind:
            yield block
            block = _Block(number, kind="table" if kind == "table" else "text")
        if kind != "none":
            block.line = number if not block.lines else block.line
            cleaned = re.sub(r"^\s*>\s?", "", line) if quotes else line
            block.lines.append(_ITEM.sub("", cleaned) if kind == "item" else cleaned.lstrip("# "))
    yield block


def _kind(line: str, *, report: bool, quotes: bool) -> str:
    deep = line.startswith("    " * 3) and not report
    if not line.strip() or (line.lstrip().startswith(">") and not quotes) or deep:
        return "none"
    if line.lstrip().startswith("|"):
        return "table"
    if _HEADING.match(line):
        return "heading"
    return "item" if _ITEM.match(line) else "text"


def _of_text(block: _Block, shared: Mapping[str, Any]) -> Iterator[Sentence]:
    text, starts = "", []
    for line in block.lines:
        starts.append(len(text))
        text += line.strip() + " "
    text, begin = joined_number(text), 0
    for end in _ends(text):
        part = text[begin:end]
        if part.strip():
            first = block.line + sum(start <= begin for start in starts[1:])
            breaks = tuple(start - begin for start in starts if begin < start < end)
            yield Sentence(
                line=first, text=part, breaks=breaks, pointers=frozenset(pointers(part)), **shared
            )
        begin = end


def _ends(text: str) -> Iterator[int]:
    """The ends of sentences. A very long one is cut at a space: patterns are quadratic in it."""
    begin = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]:
        while end - begin > _LONGEST:
            begin = (
                text.rfind(" ", begin + _LONGEST // 2, begin + _LONGEST) + 1 or begin + _LONGEST
            )
            yield begin
        yield end
        begin = end


def _cells(block: _Block, shared: Mapping[str, Any]) -> Iterator[Sentence]:
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        for line in block.lines
    ]
    headed = len(block.lines) > 1 and _RULE.fullmatch(block.lines[1]) is not None
    header = rows[0] if headed else []
    for place, row in enumerate(rows):
        if headed and place < 2:
            continue
        named = frozenset(pointers(block.lines[place]))
        # A row called `1` is a count of what its column says: seed 1, epoch 1.
        if headed and row[0].isdigit():
            row = [f"{header[0]} {row[0]}", *row[1:]]
        seeds = [
            f"seed {cell}"
            for name, cell in zip(header, row, strict=False)
            if name.lower() == "seed"
        ]
        label = ", ".join(
            dict.fromkeys(
                [*row[:1], *seeds, *(name for cell in row for name in EXPERIMENT.findall(cell))]
            )
        )
        for column, cell in enumerate(row):
            above = header[column] if column < len(header) else ""
            context = f"{label if column else ''}, {above}: "
            yield Sentence(
                line=block.line + place,
                text=context + cell,
                first=len(context),
                pointers=named,
                **shared,
            )


_CODE_OR_COMMENT = re.compile(r"(?m)^[ \t]*(?P<fence>```+|~~~+)|`[^`\n]*`|(?P<comment><!--)")


def without_comments(text: str) -> str:
    """`text` without HTML comments, on the same lines.

    Code contains no comments, and an unclosed comment is read as text.
    """
    kept, begin, place = [], 0, 0
    while match := _CODE_OR_COMMENT.search(text, place):
        place = match.end()
        if match["fence"]:
            place = _after_fence(text, match["fence"], place)
        elif match["comment"]:
            end = text.find("-->", place)
            if end < 0:
                break
            kept += [text[begin : match.start()], "\n" * text.count("\n", match.start(), end)]
            begin = place = end + len("-->")
    return "".join([*kept, text[begin:]])


def _after_fence(text: str, fence: str, place: int) -> int:
    closing = re.compile(rf"(?m)^[ \t]*{fence}.*$").search(text, place)
    return closing.end() if closing else len(text)
