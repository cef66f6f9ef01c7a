"""Arrays in an npz that somebody else wrote: numbers and text, nothing unpickled, no declared size
trusted."""

import ast
import contextlib
import math
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from harness.errors import HarnessError

Array = np.ndarray[Any, np.dtype[Any]]

KINDS = "biufSU"
MOST_MEMBERS = 10_000
_MOST_DIRECTORY = 4 << 20
"""Bytes of the archive's list of members, which zipfile reads at once."""
_MOST_HEADER = 10_000
_MOST_EMPTY = 10_000_000
"""Rows of a column whose cells have no bytes: nothing else bounds them."""
_BLOCK = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_LONGEST = 200


class BadFileError(Exception):
    """What is wrong with a file, in the words that follow its name."""

    def __init__(self, what: str, *, too_large: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.too_large = too_large
        """Bytes that it holds, when they are too many."""


@contextlib.contextmanager
def hostile(what: str, *own: type[Exception]) -> Iterator[None]:
    """The boundary around a reader of a file that hostile code may have written: whatever the
    reader raises, but errors of ours and `own`, is a BadFileError."""
    try:
        yield
    # A list of what libraries raise is never complete, and the judge must not end by a file.
    except Exception as error:
        if isinstance(error, (HarnessError, BadFileError, *own)):
            raise
        why = f"{type(error).__name__}: {error}"
        raise BadFileError(f"{what} ({ascii(why)[1:-1][:_LONGEST]})") from error


def read_npz(stream: BinaryIO, *, most_bytes: int) -> dict[str, Array]:
    """Name -> array, in the archive's order. Raises BadFileError.

    Members are stored or deflated, at most 10,000, and unpack to at most `most_bytes` in all.
    """
    damaged = hostile("is not an npz file, or a damaged one")
    with damaged, zipfile.ZipFile(_Narrow(stream)) as archive:  # type: ignore[call-overload]
        members = archive.infolist()
        _check(members, most_bytes)
        return {_name(member): _of_member(archive, member) for member in members}


def read_npy(stream: BinaryIO, *, size: int, most_bytes: int) -> Array:
    """The one array of an npy file of `size` bytes, of which it may hold `most_bytes`. Raises
    BadFileError."""
    if size > most_bytes:
        raise BadFileError(
            f"holds {size:,} bytes; at most {most_bytes:,} are read", too_large=size
        )
    with hostile("is not an npy file, or a damaged one"):
        return _array("one array", stream, size)


class _Narrow:
    """A stream for zipfile that gives no more at once than a list of members may have."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.seek, self.tell, self.seekable = stream.seek, stream.tell, stream.seekable

    def read(self, size: int = -1) -> bytes:
        most = _MOST_DIRECTORY + 1
        block = self._stream.read(most if size < 0 else min(size, most))
        if len(block) == most:
            raise BadFileError(f"lists more than {MOST_MEMBERS:,} members can need")
        return block


def _name(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def _check(members: list[zipfile.ZipInfo], most_bytes: int) -> None:
    if len(members) > MOST_MEMBERS:
        raise BadFileError(f"has {len(members):,} members; at most {MOST_MEMBERS:,} are read")
    if len({_name(member) for member in members}) < len(members):
        raise BadFileError("has arrays of the same name")
    for member in members:
        if member.compress_type not in _METHODS or member.flag_bits & _ENCRYPTED:
            raise BadFileError(
                f"packs {member.filename!a:.60} in a way that is not read; expected stored or"
                " deflated members, as np.savez and np.savez_compressed write them"
            )
    unpacked = sum(member.file_size for member in members)
    if unpacked > most_bytes:
        raise BadFileError(
            f"unpacks to {unpacked:,} bytes; at most {most_bytes:,} are read", too_large=unpacked
        )


def _of_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    # zipfile gives at most the bytes that the list of members says, which were counted.
    with archive.open(member) as stream:
        return _array(f"{_name(member)!a:.60}", stream, member.file_size)


def _array(name: str, stream: Any, whole: int) -> Array:
    """The array of an npy of `whole` bytes, header included."""
    # The header is read by hand: np.load reserves whatever size it declares before it looks at the
    # bytes.
    dtype, shape, fortran, size = _header(name, stream)
    count = math.prod(shape)
    if count * dtype.itemsize != whole - size:
        raise BadFileError(f"holds {name}, which has not the size that its header says")
    data = bytearray()
    while block := stream.read(_BLOCK):
        data += block
    if len(data) != count * dtype.itemsize:
        raise BadFileError(f"holds {name}, which is cut off")
    if dtype.itemsize == 0:
        if count > _MOST_EMPTY:
            raise BadFileError(f"holds {name}, which has {count:,} empty cells")
        return np.zeros(shape, dtype)
    flat = np.frombuffer(data, dtype)
    if dtype.kind == "U" and not _is_unicode(flat):
        raise BadFileError(f"holds {name}, which has text that is not Unicode")
    return flat.reshape(shape, order="F" if fortran else "C")


def _header(name: str, stream: Any) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    """(type, shape, Fortran order, bytes of the header) of an npy, format versions 1 to 3."""
    wrong = BadFileError(f"holds {name}, which is no array of numbers or text")
    begin = stream.read(8)
    if begin[:6] != b"\x93NUMPY" or len(begin) < 8 or begin[6] not in (1, 2, 3):
        raise wrong
    width = 2 if begin[6] == 1 else 4
    length = int.from_bytes(stream.read(width), "little")
    if length > _MOST_HEADER:
        raise wrong
    header = ast.literal_eval(stream.read(length).decode("utf-8").strip())
    if not isinstance(header, dict) or set(header) != {"descr", "fortran_order", "shape"}:
        raise wrong
    descr, shape = header["descr"], header["shape"]
    if "O" in str(descr):
        raise BadFileError(
            "holds Python objects, which are never unpickled; expected plain arrays"
        )
    whole = isinstance(shape, tuple) and all(isinstance(size, int) and size >= 0 for size in shape)
    if not isinstance(descr, str) or not whole:
        raise wrong
    dtype = np.dtype(descr)
    if dtype.kind not in KINDS or dtype.hasobject:
        raise wrong
    return dtype, shape, bool(header["fortran_order"]), 8 + width + length


def _is_unicode(text: Array) -> bool:
    """Whether all code points exist and none is a surrogate, which UTF-8 cannot encode."""
    points = text.view(f"{text.dtype.byteorder}u4") if text.size else np.zeros(0, "u4")
    return not bool(np.any((points > 0x10FFFF) | ((points >= 0xD800) & (points <= 0xDFFF))))
