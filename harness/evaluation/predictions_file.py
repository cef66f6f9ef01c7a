"""Reading a predictions file that hostile code wrote: nothing in it is executed, followed or
trusted for its size. csv or npz, by its first bytes; whatever is wrong raises Unscorable."""

import ast
import csv
import io
import os
import stat
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.evaluation import problems
from harness.evaluation.problems import Unscorable

NAME = "predictions.csv"
"""What HARNESS_PREDICTIONS points to; np.savez appends .npz to it."""
_NAMES = (NAME, f"{NAME}.npz")
_MOST_COLUMNS = 10_000
_KINDS = "biufUS"
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    RuntimeError,
    struct.error,
    OSError,
)
"""What zipfile raises; RuntimeError for an encrypted archive."""

RawColumns = dict[str, list[Any]]


def read_predictions(folder: Path, *, rows: int, limit: int) -> RawColumns:
    """The columns that predict wrote into `folder`, as Python values, in the file's order.

    Args:
        rows: how many are expected; a file with over twice as many is not read on.
        limit: most bytes, both of the file and of what it unpacks to.
    """
    data = _read_bytes(folder, limit)
    if not data.strip():
        raise Unscorable(problems.nothing_written("left an empty file at HARNESS_PREDICTIONS"))
    most = 2 * rows + 100
    columns = _parse_npz(data, most, limit) if data.startswith(b"PK") else _parse_csv(data, most)
    if "id" not in columns:
        raise Unscorable(
            problems.wrong_columns(list(columns), "`id` and `prediction` (log_loss: `p_<class>`)")
        )
    return columns


def _read_bytes(folder: Path, limit: int) -> bytes:
    # Relative to the opened folder, so that no link on the way is followed; O_NONBLOCK, so that a
    # pipe without a writer does not block.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        directory = os.open(folder, os.O_DIRECTORY | flags)
    except OSError as error:
        raise Unscorable(
            problems.unreadable(f"its folder was replaced ({error.strerror})")
        ) from error
    try:
        present = [name for name in _NAMES if _exists(name, directory)]
        if not present:
            raise Unscorable(problems.nothing_written("wrote nothing to HARNESS_PREDICTIONS"))
        if len(present) > 1:
            raise Unscorable(problems.unreadable(f"there are two, {' and '.join(present)}"))
        descriptor = os.open(present[0], flags, dir_fd=directory)
    except OSError as error:
        raise Unscorable(
            problems.unreadable(f"it is a link or cannot be opened ({error.strerror})")
        ) from error
    finally:
        os.close(directory)
    # Of the open file, not of its name. A second name could be a hard link to a file elsewhere.
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(descriptor)
        raise Unscorable(problems.unreadable("it is not a regular file with one name"))
    with os.fdopen(descriptor, "rb") as stream:
        if status.st_size > limit:
            raise Unscorable(problems.too_large(status.st_size, limit))
        return stream.read(limit)


def _exists(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _parse_csv(data: bytes, most: int) -> RawColumns:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unscorable(
            problems.unreadable(f"it is neither npz nor UTF-8 text (byte {error.start})")
        ) from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader)]
        _check_header(header)
        columns: RawColumns = {name: [] for name in header}
        kept = list(columns.values())
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                why = f"line {reader.line_num} has {len(row)} fields, the header {len(header)}"
                raise Unscorable(problems.unreadable(why))
            for values, field in zip(kept, row, strict=True):
                values.append(field)
            if len(kept[0]) > most:
                raise Unscorable(
                    problems.unreadable(f"it has over {most:,} rows, twice what was asked for")
                )
    except (csv.Error, StopIteration) as error:
        raise Unscorable(
            problems.unreadable(f"line {reader.line_num} is not csv ({error})")
        ) from error
    return columns


def _check_header(header: list[str]) -> None:
    if len(header) > _MOST_COLUMNS:
        raise Unscorable(problems.unreadable(f"it has {len(header):,} columns"))
    if len(set(header)) != len(header):
        twice = sorted({name for name in header if header.count(name) > 1})
        raise Unscorable(
            problems.unreadable(f"it has columns of the same name: {problems.examples(twice)}")
        )


def _parse_npz(data: bytes, most: int, limit: int) -> RawColumns:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            _check_header([member.filename.removesuffix(".npy") for member in members])
            unpacked = sum(member.file_size for member in members)
            if unpacked > limit:
                raise Unscorable(problems.too_large(unpacked, limit))
            columns = {}
            left = limit
            for member in members:
                content = _unpack(archive, member, left)
                left -= len(content)
                name = member.filename.removesuffix(".npy")
                columns[name] = _array(name, content, most)
    except _DAMAGED as error:
        raise Unscorable(problems.unreadable(f"it is a damaged npz ({error})")) from error
    if len({len(values) for values in columns.values()}) > 1:
        lengths = {name: len(values) for name, values in columns.items()}
        raise Unscorable(
            problems.unreadable(f"its arrays have different lengths: {problems.quoted(lengths)}")
        )
    return columns


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes:
    """A member's bytes; the size in the directory may lie, so reading stops at the limit."""
    with archive.open(member) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise Unscorable(problems.too_large(len(content), limit))
    return content


def _array(name: str, content: bytes, most: int) -> list[Any]:
    """One .npy of numbers or text, shape (rows,), as Python values."""
    # The header is read by hand: np.load reserves whatever size it declares before it looks at the
    # bytes.
    which = problems.quoted(name)
    dtype, shape, start = _array_header(which, content)
    if dtype.kind not in _KINDS or dtype.hasobject:
        raise Unscorable(
            problems.unreadable(f"array {which} holds {dtype}, expected numbers or text")
        )
    if len(shape) != 1 or shape[0] > most:
        raise Unscorable(
            problems.unreadable(f"array {which} has the shape {shape}, expected one value a row")
        )
    if len(content) - start != shape[0] * dtype.itemsize:
        raise Unscorable(
            problems.unreadable(f"array {which} has not the size that its header says")
        )
    if dtype.itemsize == 0:
        return [""] * shape[0]
    if dtype.kind == "U" and not _is_unicode(
        np.frombuffer(content, dtype=f"{dtype.byteorder}u4", offset=start)
    ):
        raise Unscorable(problems.unreadable(f"array {which} holds text that is not Unicode"))
    values = np.frombuffer(content, dtype=dtype, offset=start).tolist()
    if dtype.kind == "S":
        return [value.decode("utf-8", errors="replace") for value in values]
    return list(values)


def _is_unicode(points: NDArray[np.uint32]) -> bool:
    """Whether all code points exist and none is a surrogate, which UTF-8 cannot encode."""
    return not bool(np.any((points > 0x10FFFF) | ((points >= 0xD800) & (points <= 0xDFFF))))


def _array_header(which: str, content: bytes) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """(type, shape, offset of the data) of an .npy, format versions 1 to 3."""
    damaged = Unscorable(problems.unreadable(f"array {which} is not an npy array"))
    if content[:6] != b"\x93NUMPY" or len(content) < 12 or content[6] not in (1, 2, 3):
        raise damaged
    width, begin = (2, 10) if content[6] == 1 else (4, 12)
    length = int.from_bytes(content[8 : 8 + width], "little")
    if length > 10_000:
        raise damaged
    try:
        header = ast.literal_eval(content[begin : begin + length].decode("utf-8").strip())
        descr, shape = header["descr"], header["shape"]
        if not isinstance(descr, str) or not all(
            isinstance(size, int) and size >= 0 for size in shape
        ):
            raise damaged
        return np.dtype(descr), tuple(shape), begin + length
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise damaged from error
