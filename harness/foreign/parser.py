"""The base of every log form: parsers of bytes, of lines and of one JSON document.

A new form is one file with a parser and a `recognise` function, and one row in `formats.FORMS`.
"""

import codecs
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from harness.artifacts.content import decode
from harness.artifacts.jsonl import LineFeed, parse_document
from harness.domain.plain_text import one_line
from harness.domain.words import some
from harness.errors import UsageError
from harness.foreign.log_rows import Row

_LONGEST_LINE = 8 << 20
_LARGEST_DOCUMENT = 256 << 20
_MOST_WARNINGS = 20
_MOST_FIRST = 3
_LONGEST_SHOWN = 80


class Warnings:
    """The first few in words, the others counted: a damaged log may have millions."""

    def __init__(self) -> None:
        self.first: list[str] = []
        self.count = 0

    def add(self, text: str) -> None:
        self.count += 1
        if len(self.first) < _MOST_WARNINGS:
            self.first.append(text)


class LogHead(NamedTuple):
    """The beginning of a log, by which its form is recognised."""

    path: Path
    first: bytes
    """The first line that is not blank, as far as it is known."""
    lines: list[bytes]
    """The complete lines that are not blank."""
    whole: bool = False
    """Whether nothing more will come."""


class LogParser(ABC):
    """Turns the bytes of one log into rows, as they come."""

    name: str
    """The form, in words."""
    is_ledger = False
    """Whether it lists experiments, not the steps of one training."""

    def __init__(self) -> None:
        self.warnings = Warnings()

    @abstractmethod
    def feed(self, data: bytes) -> list[Row]:
        """The rows that `data` completes."""

    @abstractmethod
    def finish(self) -> list[Row]:
        """The last rows, when nothing more will come."""

    def notes(self) -> list[str]:
        """What a person should know about the log besides the warnings."""
        return []


class LineParser(LogParser):
    """Calls `line` with each complete line, as UTF-8 bytes without its end."""

    name = "lines"

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        """Number of the line that is being read, from 1."""
        self._feed = LineFeed(_LONGEST_LINE)
        self._started = False
        self.damaged = False
        """Whether NUL bytes stand within the line that is being read."""
        self.understood = False
        """Whether there was a row."""
        self._first: list[bytes] = []
        """The first lines, until there is a row."""

    def feed(self, data: bytes) -> list[Row]:
        if not self._started and data:
            self._started = True
            data = unmarked_utf16(data[:64]) + data
        rows: list[Row] = []
        left_out = self._feed.left_out
        for raw in self._feed.feed(data):
            self.number += 1
            new = self.line(raw)
            if not self.understood:
                self._look(raw, new := list(new))
            rows += new
        if self._feed.left_out > left_out:
            self.warnings.add(
                f"line {self.number + 1} is longer than {_LONGEST_LINE >> 20} MiB; it was left out"
            )
        return rows

    def finish(self) -> list[Row]:
        """The last line; a torn one, as a kill leaves it, is left out without a warning."""
        rest, self._feed.rest = self._feed.rest, b""
        if not rest.strip():
            return []
        self.number += 1
        rows = list(self.last(rest))
        if not self.understood:
            self._look(rest, rows)
        return rows

    def notes(self) -> list[str]:
        """The first lines, when nothing in the log is understood."""
        if self.understood or not self._first:
            return []
        shown = "; ".join(f'"{_shown(line)}"' for line in self._first)
        many = f"{some(self.number, 'line')} read, none understood as a row with values"
        return [f"{many}; the first: {shown}"]

    def _look(
        self,
        raw: bytes,
        rows: list[Row],
    ) -> None:
        self.understood = any(row.get("metrics") for row in rows)
        if len(self._first) < _MOST_FIRST and raw.strip(b" \t\r\0"):
            self._first.append(raw[:_LONGEST_SHOWN])

    @abstractmethod
    def line(self, raw: bytes) -> Iterable[Row]: ...

    def last(self, raw: bytes) -> Iterable[Row]:
        return self.line(raw)

    def text(self, raw: bytes) -> str:
        """`raw` as UTF-8, else as Latin-1 with a warning.

        The NUL bytes of a crash are not there; what they cut off is left out with a warning, for a
        number may have been cut.
        """
        raw = raw.strip(b"\0")
        self.damaged = b"\0" in raw
        if self.damaged:
            self.warnings.add(f"line {self.number} has NUL bytes; what stands before is left out")
            raw = raw.rpartition(b"\0")[2]
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.warnings.add(f"line {self.number} is not UTF-8; it was read as Latin-1")
            return raw.decode("latin-1")


def _shown(raw: bytes) -> str:
    return one_line(
        raw.decode("utf-8", "replace"),
        _LONGEST_SHOWN,
    )


class DocumentParser(LogParser):
    """Waits for one whole JSON document. A replaced file gets a new parser."""

    name = "JSON"

    def __init__(self) -> None:
        super().__init__()
        self._data = b""
        self._done = False

    def feed(self, data: bytes) -> list[Row]:
        if not data or self._done:
            return []
        self._data += data
        if len(self._data) > _LARGEST_DOCUMENT:
            self.warnings.add(f"it has more than {_LARGEST_DOCUMENT >> 20} MiB; it was not read")
            self._data, self._done = b"", True
            return []
        # Parse only when it may be complete: parsing after every block would be quadratic.
        return self._read() if self._data.rstrip(b" \t\r\n\0").endswith((b"}", b"]")) else []

    def finish(self) -> list[Row]:
        if not self._done and self._data.strip():
            self.warnings.add("its JSON document is not complete")
        return []

    @abstractmethod
    def rows(self, document: Any) -> list[Row]: ...

    def _read(self) -> list[Row]:
        try:
            document = parse_document(
                decode(self._data.strip(b"\0"), where=self.name),
            )
        except (ValueError, RecursionError, UsageError):
            return []  # still being written: the next bytes may complete it
        self._data, self._done = b"", True
        return self.rows(document)


def unmarked_utf16(head: bytes) -> bytes:
    """The byte order mark that `head` lacks: of UTF-16 without one every other byte is 0."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or len(head) < 8:
        return b""
    odd, even = head[1::2], head[::2]
    if odd.count(0) > 0.8 * len(odd) and even.count(0) < 0.2 * len(even):
        return codecs.BOM_UTF16_LE
    if even.count(0) > 0.8 * len(even) and odd.count(0) < 0.2 * len(odd):
        return codecs.BOM_UTF16_BE
    return b""
