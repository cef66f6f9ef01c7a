"""What a row search looks at: every file of the project and every blob of its repository, unpacked
within bounds; and what it did not look at."""

import bz2
import importlib
import io
import lzma
import os
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.artifacts.git import blob_reader, blob_sizes, in_repository
from harness.artifacts.npz import BadFileError, hostile
from harness.errors import HarnessError
from harness.files import sha256_bytes


@dataclass(frozen=True, kw_only=True)
class Limits:
    seconds: float = 60.0
    file_bytes: int = 128 << 20
    """Of one file, and of all that is unpacked from it; of a larger text the beginning is read."""
    total_bytes: int = 8 << 30


@dataclass(kw_only=True)
class Missed:
    """What was not looked at: why -> names."""

    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, why: str, name: str) -> None:
        self.names.setdefault(why, []).append(name)


@dataclass(frozen=True, kw_only=True)
class Source:
    """The bytes of a file, of a blob, or of a member of either."""

    name: str
    data: bytes
    blob: str = ""
    """The git object; empty for a file of the project."""
    path: str = ""
    """Relative to the root; empty for a blob."""


TOO_LARGE = "larger than the limit"
HEAD_ONLY = "larger than the limit, looked at from the beginning only"
TIME_OVER = "the time was over"
NOT_READ = "a format that is not read"
DAMAGED = "damaged or not readable"
LEFT_OUT = "a folder of installed programs, or a link to a folder"

_INSTALLED = frozenset({"node_modules", "__pycache__"})
_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
)
_TAR = slice(257, 262)
_DEEPEST = 3
_BLOCK = 1 << 20
_LZMA_MEMORY = 96 << 20
_MOST_MEMBERS = 20_000
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)


class Looking:
    """One search: its clock, its bounds, and what it missed."""

    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        self.limits, self.missed = limits, Missed()
        self.files = self.blobs = self.bytes = 0
        self._now, self._end = now, now() + limits.seconds
        self._seen: set[str] = set()

    def over(self) -> bool:
        return self._now() > self._end or self.bytes > self.limits.total_bytes

    def left_s(self) -> float:
        return max(1.0, self._end - self._now())

    def new(self, data: bytes) -> bool:
        """Whether these bytes were not looked at before, under any name."""
        key = sha256_bytes(data)
        fresh = key not in self._seen
        self._seen.add(key)
        self.bytes += len(data) if fresh else 0
        return fresh


def sources(root: Path, looking: Looking, skip: frozenset[Path]) -> Iterator[Source]:
    """Files first, the small ones before the large ones, then blobs; `skip` are paths (of the
    tables that are searched for, and folders) that are not looked at."""
    for path, size in sorted(_files(root, looking, skip), key=lambda found: found[1]):
        name = path.relative_to(root).as_posix()
        if looking.over():
            looking.missed.add(TIME_OVER, name)
            continue
        data = _read(path, size, name, looking)
        if data is None or not looking.new(data):
            continue
        looking.files += 1
        yield from unpacked(Source(name=name, data=data, path=name), looking)
    yield from _blobs(root, looking)


def _files(root: Path, looking: Looking, skip: frozenset[Path]) -> Iterator[tuple[Path, int]]:
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        for name in list(folders):
            place = here / name
            if name == ".git" or place in skip:
                folders.remove(name)
            elif place.is_symlink() or name in _INSTALLED or (place / "pyvenv.cfg").is_file():
                folders.remove(name)
                if name != "__pycache__":
                    looking.missed.add(LEFT_OUT, place.relative_to(root).as_posix())
        for name in names:
            place = here / name
            try:
                status = place.stat()
            except OSError:
                continue  # a dangling link holds no rows
            if stat.S_ISREG(status.st_mode) and status.st_size and place not in skip:
                yield place, status.st_size


def _read(path: Path, size: int, name: str, looking: Looking) -> bytes | None:
    most = looking.limits.file_bytes
    try:
        with path.open("rb") as stream:
            data = stream.read(most if size > most else -1)
    except OSError:
        looking.missed.add(DAMAGED, name)
        return None
    if size > most:
        if not is_text(data):
            looking.missed.add(TOO_LARGE, name)
            return None
        looking.missed.add(HEAD_ONLY, name)
    return data


def _blobs(root: Path, looking: Looking) -> Iterator[Source]:
    if not in_repository(root):
        return
    if looking.over():
        looking.missed.add(TIME_OVER, "the objects of git")
        return
    sizes = blob_sizes(root, timeout_s=looking.left_s())
    with blob_reader(root) as read:
        for name, size in sorted(sizes, key=lambda found: found[1]):
            if not size:
                continue
            if size > looking.limits.file_bytes:
                looking.missed.add(TOO_LARGE, f"git object {name[:12]}")
            elif looking.over():
                looking.missed.add(TIME_OVER, f"git object {name[:12]}")
            else:
                data = read(name)
                if looking.new(data):
                    looking.blobs += 1
                    whole = Source(name=f"git object {name[:12]}", data=data, blob=name)
                    yield from unpacked(whole, looking)


def is_text(data: bytes) -> bool:
    head = data[:4096]
    return b"\0" not in head or head[:2] in (b"\xff\xfe", b"\xfe\xff")


def packing(data: bytes) -> str | None:
    if data[_TAR] == b"ustar":
        return "tar"
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


def unpacked(source: Source, looking: Looking, depth: int = 0) -> Iterator[Source]:
    """The source, or what is packed in it, at most `file_bytes` in all."""
    kind = packing(source.data)
    if kind is None or (kind == "zip" and _is_npz(source.data)):
        yield source
        return
    if depth >= _DEEPEST:
        looking.missed.add(NOT_READ, f"{source.name} (packed more than {_DEEPEST} times)")
        return
    bound = [looking.limits.file_bytes]
    members = iter(_OPENERS[kind](source.data, bound))
    while True:
        try:
            with hostile("cannot be unpacked", *_REASONS):
                member = next(members, None)
        except _TooLargeError:
            looking.missed.add(TOO_LARGE, f"{source.name} (unpacked)")
            return
        except _NotReadError as error:
            looking.missed.add(NOT_READ, f"{source.name} ({error})")
            return
        except (BadFileError, HarnessError):
            looking.missed.add(DAMAGED, source.name)
            return
        if member is None:
            return
        inner, data = member
        name = f"{source.name}:{inner}" if inner else source.name
        part = Source(name=name, data=data, blob=source.blob, path=source.path)
        yield from unpacked(part, looking, depth + 1)


def _is_npz(data: bytes) -> bool:
    """Its arrays are columns of one table, and are read together."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return all(name.endswith(".npy") for name in archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        return False


class _TooLargeError(Exception):
    pass


class _NotReadError(Exception):
    pass


_REASONS = (_TooLargeError, _NotReadError)
Members = Iterator[tuple[str, bytes]]


def _bounded(read: Callable[[int], bytes], bound: list[int]) -> bytes:
    """All that `read` gives; `bound` shrinks by it. Raises _TooLargeError beyond it."""
    whole = bytearray()
    while block := read(_BLOCK):
        whole += block
        bound[0] -= len(block)
        if bound[0] < 0:
            raise _TooLargeError
    return bytes(whole)


def _stream(make: Callable[[], Any], data: bytes, bound: list[int]) -> bytes:
    """Of one or several compressed streams one after the other."""
    whole, rest = bytearray(), data
    while rest:
        decoder, left = make(), rest
        while not decoder.eof:
            block = decoder.decompress(left, _BLOCK)
            left = getattr(decoder, "unconsumed_tail", b"")
            if not block and not left and not decoder.eof:
                return bytes(whole)  # cut off: what there is
            whole += block
            bound[0] -= len(block)
            if bound[0] < 0:
                raise _TooLargeError
        rest = decoder.unused_data.lstrip(b"\0")
    return bytes(whole)


def _gzip(data: bytes, bound: list[int]) -> Members:
    yield "", _stream(lambda: zlib.decompressobj(31), data, bound)


def _bz2(data: bytes, bound: list[int]) -> Members:
    yield "", _stream(bz2.BZ2Decompressor, data, bound)


def _xz(data: bytes, bound: list[int]) -> Members:
    # The limit of memory: a few bytes may declare a dictionary of gigabytes.
    yield "", _stream(lambda: lzma.LZMADecompressor(memlimit=_LZMA_MEMORY), data, bound)


def _zstd(data: bytes, bound: list[int]) -> Members:
    arrow = optional("pyarrow")
    if arrow is None:
        raise _NotReadError("zstd needs pyarrow")
    with arrow.CompressedInputStream(arrow.BufferReader(data), "zstd") as stream:
        yield "", _bounded(stream.read, bound)


def _zip(data: bytes, bound: list[int]) -> Members:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if len(members) > _MOST_MEMBERS:
            raise _TooLargeError
        for member in members:
            if member.is_dir():
                continue
            if member.compress_type not in _PACKED or member.flag_bits & 1:
                raise _NotReadError("its packing is not read")
            with archive.open(member) as stream:
                yield member.filename, _bounded(stream.read, bound)


def _tar(data: bytes, bound: list[int]) -> Members:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isreg() else None
            if stream is not None:
                yield member.name, _bounded(stream.read, bound)


_OPENERS: dict[str, Callable[[bytes, list[int]], Members]] = {
    "gzip": _gzip,
    "bz2": _bz2,
    "xz": _xz,
    "zstd": _zstd,
    "zip": _zip,
    "tar": _tar,
}


def optional(name: str) -> Any:
    """A library that need not be installed; None without it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
