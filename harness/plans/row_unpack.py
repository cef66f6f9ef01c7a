"""What is packed in a file or object, within bounds."""

import bz2
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from harness.artifacts.npz import BadFileError, hostile
from harness.errors import HarnessError
from harness.plans.row_names import name_sources
from harness.plans.row_sources import DAMAGED, NOT_READ, TOO_LARGE, Looking, Source, optional

_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
    (b"\x78\x01", "zlib"),
    (b"\x78\x5e", "zlib"),
    (b"\x78\x9c", "zlib"),
    (b"\x78\xda", "zlib"),
)
_TAR = slice(257, 262)
_DEEPEST = 3
_BLOCK = 1 << 20
_LZMA_MEMORY = 96 << 20
_MOST_MEMBERS = 20_000
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)


def packing(data: bytes) -> str | None:
    if data[_TAR] == b"ustar":
        return "tar"
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


def unpacked(source: Source, looking: Looking, depth: int = 0) -> Iterator[Source]:
    """The source, or what is packed in it, at most `file_bytes` in all."""
    kind = packing(source.data)
    arrays = _arrays(source.data) if kind == "zip" else None
    if kind is None or arrays is not None:
        yield source
        yield from _named(source, arrays or (), looking)
        return
    if depth >= _DEEPEST:
        looking.missed.add(NOT_READ, f"{source.name} (packed more than {_DEEPEST} times)")
        return
    bound = [looking.limits.file_bytes]
    members, names = iter(_OPENERS[kind](source.data, bound)), []
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
            # Two bytes begin a zlib stream: what was decoded has them by accident.
            if not source.made:
                looking.missed.add(DAMAGED, source.name)
            return
        if member is None:
            break
        inner, data = member
        names.append(inner)
        name = f"{source.name}:{inner}" if inner else source.name
        part = replace(source, name=name, data=data)
        yield from unpacked(part, looking, depth + 1)
    yield from _named(source, names, looking)


def _named(source: Source, names: Sequence[str], looking: Looking) -> Iterator[Source]:
    what = f"{source.name} (names of its members)"
    for made in name_sources(what, [(name, "") for name in names], looking):
        yield replace(made, blob=source.blob)


def _arrays(data: bytes) -> list[str] | None:
    """The names of an npz: its arrays are columns of one table, and are read together."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        return None
    return names if all(name.endswith(".npy") for name in names) else None


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


def _zlib(data: bytes, bound: list[int]) -> Members:
    yield "", _stream(zlib.decompressobj, data, bound)


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
    "zlib": _zlib,
    "bz2": _bz2,
    "xz": _xz,
    "zstd": _zstd,
    "zip": _zip,
    "tar": _tar,
}
