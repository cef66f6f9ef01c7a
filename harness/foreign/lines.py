"""Parsers of text, a line at a time: what they share is cutting bytes into lines, and counting what
is damaged."""

import codecs
from collections.abc import Iterable

from harness.artifacts.jsonl import LineFeed
from harness.foreign.rows import Row

_LONGEST_LINE = 8 << 20
_MOST_WARNINGS = 20


class Warnings:
    """The first few in words, the others counted: a damaged log of millions of lines is one page,
    not a flood."""

    def __init__(self) -> None:
        self.first: list[str] = []
        self.count = 0

    def add(self, text: str) -> None:
        self.count += 1
        if len(self.first) < _MOST_WARNINGS:
            self.first.append(text)


class LineParser:
    """Feeds `line` with each complete line, without its end, as UTF-8 bytes; a half-written one
    waits."""

    name = "lines"

    def __init__(self) -> None:
        self.warnings = Warnings()
        self.number = 0
        """Of the line that is read, from 1."""
        self._feed = LineFeed()
        self._started = False

    def feed(self, data: bytes) -> list[Row]:
        if not self._started and data:
            self._started = True
            data = unmarked_utf16(data[:64]) + data
        rows: list[Row] = []
        for raw in self._feed.feed(data):
            rows += self._one(raw)
        if len(self._feed.rest) > _LONGEST_LINE:
            self.warnings.add(
                f"line {self.number + 1} is longer than {_LONGEST_LINE >> 20} MiB; it was left out"
            )
            self._feed.rest = b""
        return rows

    def finish(self) -> list[Row]:
        """The last line, when nothing more will come; what is torn there is left out without a
        warning."""
        rest, self._feed.rest = self._feed.rest, b""
        return list(self.last(rest)) if rest.strip() else []

    def line(self, raw: bytes) -> Iterable[Row]:
        raise AssertionError("each parser has its own")

    def last(self, raw: bytes) -> Iterable[Row]:
        return self.line(raw)

    def text(self, raw: bytes) -> str:
        """`raw` without NUL bytes, which a crash leaves behind; as Latin-1, with a warning, when it
        is not UTF-8."""
        raw = raw.replace(b"\0", b"")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.warnings.add(f"line {self.number} is not UTF-8; it was read as Latin-1")
            return raw.decode("latin-1")

    def _one(self, raw: bytes) -> Iterable[Row]:
        self.number += 1
        return self.line(raw)


def unmarked_utf16(head: bytes) -> bytes:
    """The byte order mark that `head` lacks, when it is UTF-16 without one; else nothing."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or len(head) < 8:
        return b""
    odd, even = head[1::2], head[::2]
    if odd.count(0) > 0.8 * len(odd) and even.count(0) < 0.2 * len(even):
        return codecs.BOM_UTF16_LE
    if even.count(0) > 0.8 * len(even) and odd.count(0) < 0.2 * len(odd):
        return codecs.BOM_UTF16_BE
    return b""
