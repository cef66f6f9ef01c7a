"""Reading a predictions file that hostile code wrote: nothing in it is executed, followed or
trusted for its size. csv or npz, by its first bytes; whatever is wrong raises Unscorable."""

import csv
import io
import os
import stat
from pathlib import Path
from typing import Any

from harness.artifacts.npz import Array, BadFileError, hostile, read_npz
from harness.evaluation import problems
from harness.evaluation.problems import Unscorable

NAME = "predictions.csv"
"""What HARNESS_PREDICTIONS points to; np.savez appends .npz to it."""
_NAMES = (NAME, f"{NAME}.npz")
_MOST_COLUMNS = 10_000
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
    try:
        with hostile("cannot be read", Unscorable):
            packed = data.startswith(b"PK")
            columns = _parse_npz(data, most, limit) if packed else _parse_csv(data, most)
    except BadFileError as error:
        raise Unscorable(problems.unreadable(f"it {error.what}")) from error
    if "id" not in columns:
        raise Unscorable(
            problems.wrong_columns(
                list(columns), "`id` and `prediction`, `score` or `p_<class>`, as the metric needs"
            )
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
        arrays = read_npz(io.BytesIO(data), most_bytes=limit)
    except BadFileError as error:
        if error.too_large is not None:
            raise Unscorable(problems.too_large(error.too_large, limit)) from error
        raise Unscorable(problems.unreadable(f"it {error.what}")) from error
    _check_header([name.strip() for name in arrays])
    for name, array in arrays.items():
        if array.ndim != 1 or len(array) > most:
            which = problems.quoted(name)
            raise Unscorable(
                problems.unreadable(
                    f"array {which} has the shape {array.shape}, expected one value a row"
                )
            )
    if len({len(array) for array in arrays.values()}) > 1:
        lengths = {name: len(array) for name, array in arrays.items()}
        raise Unscorable(
            problems.unreadable(f"its arrays have different lengths: {problems.quoted(lengths)}")
        )
    return {name: _values(array) for name, array in arrays.items()}


def _values(array: Array) -> list[Any]:
    values: list[Any] = array.tolist()
    if array.dtype.kind == "S":
        return [value.decode("utf-8", errors="replace") for value in values]
    return values
