"""Parts of a table as files of its own form, each row as it stands there: no number is read and
written again in other digits."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from harness.artifacts.content import decode
from harness.artifacts.npz import read_npz
from harness.plans.tables import (
    MAX_BYTES,
    Column,
    arrow_table,
    csv_cells,
    json_lines,
    pyarrow,
    write_npz,
)

Rows = NDArray[np.int64]
Ids = tuple[str, Column]
"""Name and values of a column that the parts get besides."""


def part_files(
    path: Path, data: bytes, parts: Mapping[str, Rows], ids: Ids | None
) -> dict[str, bytes]:
    """Part -> its file, of the table in `data`, which came from `path`. Raises UsageError."""
    writers = {".npz": _npz, ".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}
    return writers[path.suffix](path, data, parts, ids)


def _csv(path: Path, data: bytes, parts: Mapping[str, Rows], ids: Ids | None) -> dict[str, bytes]:
    header, cells = csv_cells(path, decode(data, where=path.name))
    added = None if ids is None else [str(value) for value in ids[1].tolist()]
    files = {}
    for name, rows in parts.items():
        target = io.StringIO()
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(header if ids is None else [*header, ids[0]])
        writer.writerows(
            cells[row] if added is None else [*cells[row], added[row]] for row in rows.tolist()
        )
        files[name] = target.getvalue().encode("utf-8")
    return files


def _jsonl(
    path: Path, data: bytes, parts: Mapping[str, Rows], ids: Ids | None
) -> dict[str, bytes]:
    lines = [line.strip() for _, line in json_lines(decode(data, where=path.name))]
    if ids is not None:
        name = orjson.dumps(ids[0]).decode()
        lines = [
            f"{line[:-1]},{name}:{value}}}"
            for line, value in zip(lines, ids[1].tolist(), strict=True)
        ]
    return {
        name: "".join(f"{lines[row]}\n" for row in rows.tolist()).encode("utf-8")
        for name, rows in parts.items()
    }


def _npz(path: Path, data: bytes, parts: Mapping[str, Rows], ids: Ids | None) -> dict[str, bytes]:
    columns = read_npz(io.BytesIO(data), most_bytes=MAX_BYTES)
    if ids is not None:
        columns = {**columns, ids[0]: ids[1]}
    files = {}
    for name, rows in parts.items():
        target = io.BytesIO()
        write_npz(target, path, {column: array[rows] for column, array in columns.items()})
        files[name] = target.getvalue()
    return files


def _parquet(
    path: Path, data: bytes, parts: Mapping[str, Rows], ids: Ids | None
) -> dict[str, bytes]:
    arrow, parquet = pyarrow(path), pyarrow(path, "parquet")
    table: Any = arrow_table(path, io.BytesIO(data), MAX_BYTES)
    if ids is not None:
        table = table.append_column(ids[0], arrow.array(ids[1]))
    files = {}
    for name, rows in parts.items():
        target = io.BytesIO()
        parquet.write_table(table.take(arrow.array(rows)), target)
        files[name] = target.getvalue()
    return files
