"""The text form in parts: `<writer>.jsonl` grows; what is full is closed, compressed and written
once, as `<writer>.<first>-<last>.jsonl.gz` (numbers of facts).

One file that grows with each command ends beyond what git hosts take, and git keeps each of its
versions. Where a part ends is decided line by line, so every clone makes the same ones.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.errors import LedgerDamagedError
from harness.files import atomic_write, open_file

LIMIT = 128 << 10
"""Bytes of facts in one part: some eight experiments. The part that grows is not packed: what it
may hold, the first experiments take."""
SUFFIX = ".jsonl"
_CLOSED = re.compile(r"(.+)\.(\d{8,})-(\d{8,})\.jsonl\.gz\Z")

Lines = Iterator[tuple[Path, int, bytes, bool]]


class PartDamagedError(LedgerDamagedError):
    """A closed part that cannot be unpacked."""

    def __init__(self, path: Path, why: object) -> None:
        super().__init__(
            f"{path} cannot be unpacked: {why}.",
            hint="Restore the file from git, or run `harness ledger rebuild`.",
        )
        self.path = path


class Closed(NamedTuple):
    first: int
    last: int
    path: Path


def text_path(folder: Path, writer: str) -> Path:
    """The part that grows."""
    return folder / f"{writer}{SUFFIX}"


def closed_parts(folder: Path, writer: str) -> list[Closed]:
    """In the chain's order."""
    found = []
    for path in folder.glob(f"*{SUFFIX}.gz"):
        named = _CLOSED.match(path.name)
        if named is not None and named[1] == writer:
            found.append(Closed(int(named[2]), int(named[3]), path))
    return sorted(found)


def writer_of(name: str) -> str | None:
    """Whose closed part a file of this name is."""
    named = _CLOSED.match(name)
    return None if named is None else named[1]


def unbroken(parts: list[Closed]) -> int:
    """The number of the last fact before which none is missing; 0 without a part."""
    last = 0
    for part in parts:
        if part.first != last + 1:
            break
        last = part.last
    return last


def close_part(folder: Path, writer: str, first: int, lines: list[bytes]) -> Path:
    """Write `lines`, each with its end, as the closed part that begins with fact `first`."""
    last = first + len(lines) - 1
    path = folder / f"{writer}.{first:08d}-{last:08d}{SUFFIX}.gz"
    # Without a time in it the same facts give the same bytes in every clone.
    atomic_write(path, gzip.compress(b"".join(lines), mtime=0), durable=False)
    return path


def chain_lines(folder: Path, writer: str) -> Lines:
    """(file, number from 1, bytes without the line end, whether the line end is missing) of all
    parts. Raises PartDamagedError."""
    before: set[bytes] = set()
    for part in closed_parts(folder, writer):
        before = set()
        for number, line, torn in _unpacked(part.path):
            before.add(line)
            yield part.path, number, line, torn
    path = text_path(folder, writer)
    with open_file(path) as stream:
        for number, line, torn in _split(stream):
            # A kill may fall between the closing of a part and the shortening of this one.
            if line not in before:
                yield path, number, line, torn


def _unpacked(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    try:
        with gzip.open(path, "rb") as stream:
            yield from _split(stream)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise PartDamagedError(path, error) from error


def _split(stream: Iterator[bytes]) -> Iterator[tuple[int, bytes, bool]]:
    for number, line in enumerate(stream, 1):
        yield number, line.removesuffix(b"\n"), not line.endswith(b"\n")
