"""Text files that people and agents write, read without trusting the locale."""

import codecs
import os
from pathlib import Path

from harness.artifacts.hashes import open_regular
from harness.errors import UsageError

MAX_TEXT_BYTES = 64 << 20
"""Beyond this a file is not a form that somebody filled in."""


def read_bytes(path: Path, *, limit: int | None = None) -> bytes:
    """The bytes of a regular file.

    Raises NotFoundError when there is none and UsageError when it cannot be read, is no regular
    file (a pipe would never answer) or is longer than `limit` bytes.
    """
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if limit is not None and size > limit:
            raise UsageError(
                f"{path} has {size:,} bytes; at most {limit:,} are read.",
                hint="Check that it is the right file.",
            )
        return stream.read()


def decode(data: bytes, *, where: str) -> str:
    """`data` as text with `\\n` line ends: UTF-8 with or without BOM, or UTF-16 with one.

    Damage is never hidden: bytes of another encoding and NUL characters raise UsageError with the
    line.
    """
    encoding = (
        "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    )
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{where}:{line}: byte {error.start} is not {encoding.removesuffix('-sig').upper()}.",
            hint="Save the file as UTF-8.",
            code="encoding",
        ) from error
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise UsageError(
            f"{where}:{line}: a NUL character.", hint="Save the file as UTF-8.", code="encoding"
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_text(path: Path) -> str:
    """A whole text file; see `read_bytes` and `decode` for what is refused."""
    return decode(read_bytes(path, limit=MAX_TEXT_BYTES), where=str(path))
