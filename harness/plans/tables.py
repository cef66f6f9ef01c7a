"""Tables of rows: npz (never unpickled), csv, jsonl and parquet. A table is columns of equal
length."""

import csv
import importlib
import io
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from harness.artifacts.content import decode, open_regular
from harness.artifacts.npz import BadFileError, hostile, read_npz
from harness.errors import UsageError
from harness.files import atomic_write, canonical_json, replacing

Column = np.ndarray[Any, np.dtype[Any]]

FORMATS = (".npz", ".csv", ".jsonl", ".parquet")
_PACKED = (".gz", ".zip", ".xz", ".bz2", ".zst", ".tar", ".tgz")
_SEPARATOR = re.compile(r"[;\t|]")
MAX_BYTES = 8 << 30
"""Of an unpacked table: a small archive may unpack to more than the machine has."""

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\Z")
_REAL = re.compile(
    r"[-+]?(?:nan|inf(?:inity)?|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?)\Z", re.IGNORECASE
)


_NO_COLUMN = "Correct the name where you gave it, or add the column."


@dataclass(frozen=True, kw_only=True)
class Table:
    columns: dict[str, Column]
    """Name -> array of shape (n, ...)."""
    n: int

    def column(self, name: str, *, where: str) -> Column:
        """Raises UsageError naming the table and the columns that it has."""
        if name not in self.columns:
            raise UsageError(
                f"{where} has no column {name!r}; it has {', '.join(self.columns) or 'none'}.",
                hint=self._meant(name),
                code="column_missing",
            )
        return self.columns[name]

    def _meant(self, name: str) -> str:
        if len(self.columns) == 1 and (told := _separated(next(iter(self.columns)))):
            return told
        if self.columns and all(map(is_number, self.columns)):
            return "Its first line is a row: write the names of the columns above it."
        lower = {known.lower(): known for known in self.columns}
        near = get_close_matches(name.lower(), lower, n=1)
        if near:
            return f"Did you mean {lower[near[0]]!r}? {_NO_COLUMN}"
        return _NO_COLUMN


def read_table(path: Path, *, max_bytes: int = MAX_BYTES) -> Table:
    """Read by extension. Raises NotFoundError or UsageError.

    csv: a header line; a column is int64 if all its cells are, else float64, else text. jsonl: one
    object a line, all with the same keys; lists become further axes. parquet: as jsonl; needs
    pyarrow.
    """
    readers = {
        ".npz": _read_npz,
        ".csv": _read_csv,
        ".jsonl": _read_jsonl,
        ".parquet": _read_parquet,
    }
    reader = readers.get(path.suffix)
    if reader is None:
        raise _no_format(path)
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > max_bytes:
            raise _error(path, f"has {size:,} bytes; at most {max_bytes:,} are read")
        try:
            with hostile("cannot be read"):
                columns = reader(path, stream, max_bytes)
        except BadFileError as error:
            raise _error(path, error.what) from error
    lengths = {name: array.shape[0] if array.ndim else -1 for name, array in columns.items()}
    if not columns:
        raise _error(path, "has no columns")
    if scalar := [name for name, length in lengths.items() if length < 0]:
        raise _error(path, f"column {scalar[0]!r} is a single value; expected one value a row")
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise _error(path, f"has columns of different lengths ({listed})")
    return Table(columns=columns, n=next(iter(lengths.values())))


def write_table(path: Path, columns: Mapping[str, Column]) -> None:
    """Write by extension, atomically; the same columns give the same bytes. Raises UsageError."""
    arrays = {name: np.asarray(array) for name, array in columns.items()}
    if path.suffix == ".npz":
        with replacing(path) as new:
            write_npz(new.stream, path, arrays)
    elif path.suffix == ".jsonl":
        names = list(arrays)
        rows = zip(*(array.tolist() for array in arrays.values()), strict=True)
        atomic_write(
            path,
            b"".join(canonical_json(dict(zip(names, row, strict=True))) + b"\n" for row in rows),
        )
    elif path.suffix == ".csv":
        atomic_write(path, _csv_text(path, arrays))
    elif path.suffix == ".parquet":
        _write_parquet(path, arrays)
    else:
        raise _no_format(path)


def _read_npz(path: Path, stream: Any, max_bytes: int) -> dict[str, Column]:
    return read_npz(stream, most_bytes=max_bytes)


def _read_csv(path: Path, stream: Any, max_bytes: int) -> dict[str, Column]:
    header, rows = csv_cells(path, decode(stream.read(max_bytes), where=path.name))
    return {name: _typed([row[index] for row in rows]) for index, name in enumerate(header)}


def csv_cells(path: Path, text: str) -> tuple[list[str], list[list[str]]]:
    """(header, rows), each cell as it stands there."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    other = _separated(text.partition("\n")[0])
    try:
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise _error(path, f"line {reader.line_num}: {error}", other) from error
    if not rows:
        raise _error(path, "is empty; expected a header line")
    header = [name.strip() for name in rows[0]]
    if len(set(header)) < len(header) or "" in header:
        raise _error(
            path, f"has the header {header}; expected names that are not empty and differ"
        )
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(header):
            what = f"row {number} has {len(row)} cells; expected {len(header)}"
            raise _error(path, what, other)
    return header, rows[1:]


def _separated(header: str) -> str:
    """What to do where another sign than the comma stands between the names of a header."""
    sign = None if "," in header else _SEPARATOR.search(header)
    return f"Its cells are separated by {sign[0]!r}: write them anew with commas." if sign else ""


def _typed(cells: list[str]) -> Column:
    # By patterns, not by int() and float(): these also take 1_000 and digits of other scripts.
    stripped = [cell.strip() for cell in cells]
    if all(_INTEGER.match(cell) for cell in stripped):
        return np.array([int(cell) for cell in stripped], dtype=np.int64)
    if all(_REAL.match(cell) for cell in stripped):
        return np.array([float(cell) for cell in stripped], dtype=np.float64)
    return np.array(cells, dtype=np.str_)


def is_number(cell: str) -> bool:
    """Whether a cell of a csv table is a number by itself."""
    return bool(_REAL.match(cell))


def _read_jsonl(path: Path, stream: Any, max_bytes: int) -> dict[str, Column]:
    rows: list[dict[str, Any]] = []
    text = decode(stream.read(max_bytes), where=path.name)
    for number, line in json_lines(text):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise _error(path, f"line {number} is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise _error(path, f"line {number} is not an object")
        if rows and set(row) != set(rows[0]):
            raise _error(
                path, f"line {number} has the keys {sorted(row)}; expected {sorted(rows[0])}"
            )
        rows.append(row)
    if not rows:
        raise _error(path, "has no rows")
    return {name: _stacked(path, name, [row[name] for row in rows]) for name in rows[0]}


def json_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number from 1, line) of the lines that are not empty."""
    # Not splitlines: U+2028 and the like do not end a line of JSON.
    return (
        (number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()
    )


def _stacked(path: Path, name: str, values: list[Any]) -> Column:
    kinds = {type(value) for value in values}
    if (kinds - {int, float} and len(kinds) > 1) or kinds & {dict, type(None)}:
        listed = ", ".join(sorted(kind.__name__ for kind in kinds))
        what = f"column {name!r} mixes or holds {listed}; expected numbers, text or lists of"
        raise _error(path, f"{what} numbers")
    try:
        array = np.array(values)
    except (ValueError, OverflowError) as error:
        raise _error(path, f"column {name!r} has lists of different lengths") from error
    if array.dtype.kind == "O":
        raise _error(
            path, f"column {name!r} cannot be an array; expected numbers, text or lists of numbers"
        )
    return array


def pyarrow(path: Path, part: str = "") -> Any:
    """The optional library, or a part of it, to read `path` with. Raises UsageError
    (pyarrow_missing)."""
    try:
        return importlib.import_module(f"pyarrow.{part}" if part else "pyarrow")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{path.name} is a parquet table, and pyarrow is not installed where the harness runs.",
            hint="Install it there (`pip install pyarrow`), or use npz, csv or jsonl.",
            code="pyarrow_missing",
        ) from error


def _read_parquet(path: Path, stream: Any, max_bytes: int) -> dict[str, Column]:
    table = arrow_table(path, stream, max_bytes)
    return {
        name: _from_arrow(path, name, column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def arrow_table(path: Path, stream: Any, max_bytes: int) -> Any:
    """A parquet file as a pyarrow.Table with rows, and names that differ."""
    file = pyarrow(path, "parquet").ParquetFile(stream)
    groups, size = [], 0
    # Group by group: what the file declares of its size may be a lie.
    for number in range(file.num_row_groups):
        group = file.read_row_group(number, use_threads=False)
        size += group.nbytes
        if size > max_bytes:
            raise _error(path, f"unpacks to more than {max_bytes:,} bytes; at most that are read")
        groups.append(group)
    if not sum(group.num_rows for group in groups):
        raise _error(path, "has no rows")
    table = pyarrow(path).concat_tables(groups)
    if len(set(table.column_names)) < len(table.column_names):
        raise _error(path, f"has the columns {table.column_names}; expected names that differ")
    return table


def _from_arrow(path: Path, name: str, column: Any) -> Column:
    if column.null_count:
        raise _error(path, f"column {name!r} has {column.null_count} cells without a value")
    array: Column = column.to_numpy()
    if array.dtype.kind == "M":
        return np.datetime_as_string(array)
    # Text, lists and what else numpy has no type for arrive as Python objects.
    return array if array.dtype.kind in "biuf" else _stacked(path, name, column.to_pylist())


def _write_parquet(path: Path, arrays: dict[str, Column]) -> None:
    arrow, parquet = pyarrow(path), pyarrow(path, "parquet")
    columns = {
        name: arrow.array(
            array if array.ndim == 1 and array.dtype.kind in "biuf" else array.tolist()
        )
        for name, array in arrays.items()
    }
    with replacing(path) as new:
        parquet.write_table(arrow.table(columns), new.stream)


def write_npz(stream: Any, path: Path, arrays: Mapping[str, Column]) -> None:
    """The columns as an archive; `path` is named by errors."""
    if objects := [name for name, array in arrays.items() if array.dtype.hasobject]:
        raise _error(path, f"column {objects[0]!r} holds Python objects; expected plain arrays")
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            # A ZipInfo of its own has a fixed time: same columns, same bytes.
            member = zipfile.ZipInfo(f"{name}.npy")
            with archive.open(member, "w", force_zip64=True) as target:
                np.lib.format.write_array(target, array, allow_pickle=False)


def _csv_text(path: Path, arrays: dict[str, Column]) -> str:
    if wide := [name for name, array in arrays.items() if array.ndim != 1]:
        raise _error(path, f"column {wide[0]!r} has further axes, which csv cannot hold")
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(arrays)
    writer.writerows(zip(*(array.tolist() for array in arrays.values()), strict=True))
    return target.getvalue()


def _error(path: Path, what: str, hint: str = "") -> UsageError:
    hint = hint or f"Correct {path}."
    return UsageError(f"{path.name} {what}.", hint=hint, code="table_unreadable")


def _no_format(path: Path) -> UsageError:
    what = f"has the extension {path.suffix!r}; expected one of {', '.join(FORMATS)}"
    packed = path.suffix in _PACKED
    way = "Unpack it first." if packed else "Write it as csv or parquet first, e.g. by pandas."
    return _error(path, what, way)
