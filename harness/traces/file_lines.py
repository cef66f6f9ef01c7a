"""The lines of a file of any size, one at a time."""

import codecs
import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

from harness.artifacts.content import open_regular
from harness.artifacts.jsonl import LineFeed

LONGEST = 32 << 20
"""Bytes of a line that is read; of a longer one only the length is known."""
_BUFFER = 1 << 20
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def file_lines(path: Path) -> Iterator[bytes]:
    """Each line with its end, if it has one; `LONGEST` bytes of a longer line. A UTF-8 BOM is left
    out, UTF-16 with a BOM is decoded.

    Raises NotFoundError or UsageError when the file cannot be read.
    """
    # Larger reads than a file's own buffer of 8 KiB, which is two rows.
    with io.BufferedReader(cast(io.RawIOBase, open_regular(path)), _BUFFER) as raw:
        head = raw.read(len(codecs.BOM_UTF8))
        raw.seek(len(head) if head == codecs.BOM_UTF8 else 0)
        if head[:2] in _UTF16:
            feed = LineFeed()
            while block := raw.read(_BUFFER):
                yield from (line + b"\n" for line in feed.feed(block))
            if feed.rest:
                yield feed.rest
            return
        for line in iter(partial(raw.readline, LONGEST), b""):
            yield line
            if len(line) == LONGEST and not line.endswith(b"\n"):
                _skip(partial(raw.readline, LONGEST))


def _skip(more: partial[bytes]) -> None:
    while (part := more()) and not part.endswith(b"\n"):
        pass
