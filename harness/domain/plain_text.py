"""The one filter for text that is not the harness's own, and the one way to quote it.

Agents, their programs, data and logs write text. What a terminal or a model would act on, or a
reader would not see, is taken out: escape sequences; control, format, private, unassigned and lone
surrogate characters; the rest that has no shape (variation selectors, fillers); marks above the
fourth on one letter. Zero-width joiners go too: an emoji of several parts is shown as its parts,
and text stays readable.

Quoted text is words: it opens no heading, comment, table cell, code fence, import, tag, entity,
formula or strike in the Markdown around it, on whatever line it comes to stand. Quoting twice is
quoting once. `in_quotes` says to a reader where it ends.

Standard library only, Python 3.9 and newer: it is copied into projects beside the hooks.
"""

from __future__ import annotations

import re
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BREAKS = ("\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
_SHAPELESS = {
    *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0),  # joiner, fillers, inherent vowels
    0x2800,  # braille without a dot
    *range(0x180B, 0x1810),
    *range(0xFE00, 0xFE10),
    *range(0xE0100, 0xE01F0),
}
"""Characters of other categories that Unicode says to show as nothing."""
_SEQUENCE = re.compile(
    # Strings up to their end (OSC, DCS, ...), CSI sequences, then the two-character ones.
    "(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)"
    "|(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|\x1b[ -/]*[0-~]"
)


class _Kept(dict):  # type: ignore[type-arg]
    """Code point -> itself, or None to drop it; filled as characters are met."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        # Spaces of other widths are not printable for Python; they are no harm.
        space = code >= 0xA0 and character.isspace() and character not in _BREAKS
        seen = character.isprintable() or character in "\n\t" or space
        kept = code if seen and code not in _SHAPELESS else None
        self[code] = kept
        return kept


_KEPT = _Kept()
_MARKS = 4
"""On one letter."""


class TableText(str):
    """A table for a terminal: its cells are plain, its colours the harness's own."""


def plain(text: str) -> str:
    """`text` without what is not to be seen; lines and tabs stay."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    for each in _BREAKS:
        text = text.replace(each, "\n")
    return _low(_SEQUENCE.sub("", text).translate(_KEPT))


def _low(text: str) -> str:
    """`text` with at most four marks on a letter: more of them cover the lines around it."""
    marks = "".join(one for one in set(text) if _is_mark(one))
    return re.sub(f"([{marks}]{{{_MARKS}}})[{marks}]+", r"\1", text) if marks else text


def _is_mark(character: str) -> bool:
    return character >= "\u0300" and unicodedata.category(character) in ("Mn", "Me")


def one_line(text: str, limit: int | None = None) -> str:
    """`plain` text on one line, cut to `limit` characters."""
    line = " ".join(plain(text).split())
    return line if limit is None or len(line) <= limit else line[: limit - 1].rstrip() + "…"


def plain_name(name: Any) -> str:
    """The name of a metric or a column on one line; quick, for it is asked of every value."""
    text = str(name)
    return text if text.isascii() and text.isprintable() else one_line(text)


def plain_value(value: Any) -> Any:
    """A JSON value whose texts, and names of fields, are `plain`."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain_value(name): plain_value(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(part) for part in value]
    return value


def plain_json(document: str) -> str:
    """JSON text whose invisible characters are written `\\uXXXX`: programs read the same value."""
    if document.isascii() and document.replace("\n", "").isprintable():
        return document
    kept, marks = [], 0
    for character in document:
        seen = character == "\n" or _KEPT[ord(character)] is not None
        marks = marks + 1 if seen and _is_mark(character) else 0
        if seen and marks <= _MARKS:
            kept.append(character)
            continue
        data = character.encode("utf-16-be", "surrogatepass")
        kept += [f"\\u{data[i] << 8 | data[i + 1]:04x}" for i in range(0, len(data), 2)]
    return "".join(kept)


_TAG = re.compile(r"<(?=[A-Za-z/!?|])")
_IMPORT = re.compile(r"(?<![A-Za-z0-9_\\])@")
_ENTITY = re.compile(
    r"&(?=#)"
    r"|&(?!(?:lt|amp);)(?=[A-Za-z][A-Za-z0-9]+(?:;|$))"  # at the end: ours may begin with `;`
)
_LINK = re.compile(r"\](?=\()")
_BLOCK_START = re.compile(
    r"#{1,6}(?:\s|$)|>|[-+*](?:\s|$)|\d{1,9}(?P<after>[.)])(?:\s|$)|~~~|/"  # heading to command
    r"|\[[^\]]*\]:|(?:[-=*_|:]\s*)+$|\|"  # definition, rule, row of a table
)
_ITEM = re.compile(r"((?:[-+*]|\d{1,9}[.)]) )(?=\S)")
_TICKS = re.compile(r"`+")
_CODE = re.compile(r"(?<![`\\])(`+)(?!`).+?(?<!`)\1(?!`)")
_DOUBLE = '"\u201c\u201d\u201e\u201f\u2033\u02ba\u275d\u275e\u301d\u301e\uff02'
_SINGLE = dict.fromkeys(map(ord, _DOUBLE), "'")
"""What looks like a double quotation mark, to a single one."""


def in_quotes(text: str, limit: int | None = None) -> str:
    """`text` on one line in quotation marks, of which it holds none of its own."""
    return f'"{one_line(text, limit).translate(_SINGLE)}"'


def inline(text: str, limit: int | None = None) -> str:
    """`text` quoted within a line of Markdown."""
    line = _ENTITY.sub("&amp;", one_line(text, limit))
    line = _LINK.sub(r"]\\", _IMPORT.sub(r"\\@", _TAG.sub("&lt;", line)))
    if "```" in line or "\\`" in line or not _ticks_close(line):
        line = _escaped(line, "`")
    return _begun(_unpaired(line))


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """`text`, which is quoted, on lines of at most `width` characters where its words are no
    longer; no line begins a block. `first` and `rest` stand before its lines."""
    lines: list[str] = []
    words = text.split()
    while words:
        lead = rest if lines else first
        room = width - len(lead)
        count = 1
        while count < len(words) and len(_begun(" ".join(words[: count + 1]))) <= room:
            count += 1
        lines.append(lead + _begun(" ".join(words[:count])))
        words = words[count:]
    return lines


def _begun(line: str) -> str:
    """`line`, which begins no block."""
    start = _BLOCK_START.match(line)
    if start is None:
        return line
    at = 0 if start["after"] is None else start.start("after")
    return f"{line[:at]}\\{line[at:]}"


def cell(text: str | None, limit: int = 160) -> str:
    """`text` quoted in a cell of a table; "-" when empty."""
    return _escaped(inline(text or "", limit), "|") or "-"


def prose(text: str) -> list[str]:
    """`text` as lines of Markdown that are words: only its lists stay lists."""
    lines = []
    for line in map(one_line, plain(text).split("\n")):
        item = _ITEM.match(line)
        lines.append(item[0] + inline(line[item.end() :]) if item else inline(line))
    while lines and not lines[-1]:
        lines.pop()
    return lines


def quoted(text: str) -> list[str]:
    """`text` as a block quote of its `prose`."""
    return [f"> {line}".rstrip() for line in prose(text)] or ["> -"]


def code(text: str) -> str:
    """`text` as code within a line of Markdown."""
    return f"`{one_line(text).replace('`', chr(39))}`"


def _ticks_close(line: str) -> bool:
    """Whether each run of backticks that opens code is closed by a later one of its length."""
    open_run = 0
    for run in _TICKS.finditer(line):
        if not open_run:
            open_run = len(run[0])
        elif len(run[0]) == open_run:
            open_run = 0
    return open_run == 0


def _unpaired(line: str) -> str:
    """`line` whose marks of a strike or a formula find no second one in a text that follows."""
    shown, at = [], 0
    for span in _CODE.finditer(line):
        shown += [_escaped(_escaped(line[at : span.start()], "~"), "$"), span[0]]
        at = span.end()
    return "".join([*shown, _escaped(_escaped(line[at:], "~"), "$")])


def _escaped(line: str, mark: str) -> str:
    """`line` with a backslash before each `mark` that has none."""
    return "".join(
        f"\\{character}" if character == mark and not _is_escaped(line, place) else character
        for place, character in enumerate(line)
    )


def _is_escaped(line: str, place: int) -> bool:
    before = line[:place]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1
