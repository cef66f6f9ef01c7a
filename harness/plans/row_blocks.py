"""Whatever reads as rows, as blocks of numbers and columns of words: text with numbers, csv, JSON,
npz, npy, parquet, SQLite. By content, never by a file's name."""

import contextlib
import csv
import io
import itertools
import re
import sqlite3
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from harness.artifacts.npz import BadFileError, hostile, read_npz
from harness.plans.row_raw import raw_numbers, texts_in
from harness.plans.row_sources import DAMAGED, NOT_READ, Looking, Source, is_text, optional

Numbers = NDArray[np.float64]
Words = NDArray[Any]
LEAST = 8
"""Numbers, or words of a column, below which nothing is looked at."""
_MOST_DEPTH = 6
_MOST_CSV = 32 << 20
_MOST_ROWS = 5_000_000
_NUMBER = re.compile(
    rb"\n|(?<![\w.])[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w.])"
)
_DIGITS = re.compile(rb"(?<![\w.])[0-9]{40,}(?![\w.])")
_GROUPS = 4
_FEW_ASKED = 200


@dataclass(frozen=True, kw_only=True)
class Block:
    """Rows that stand together."""

    numbers: Numbers
    """(rows, columns)"""
    names: tuple[str, ...] = ()
    """Of the columns, where they have names."""
    words: Mapping[str, Words] = field(default_factory=dict)
    """Columns of texts, each (rows,)."""


def blocks(source: Source, looking: Looking) -> list[Block]:
    """The blocks of a source; what is no text and of no known form is noted as missed."""
    data = source.data
    try:
        with hostile("cannot be read"):
            if data.startswith(b"PK\x03\x04"):
                return _of_columns(
                    read_npz(io.BytesIO(data), most_bytes=looking.limits.file_bytes)
                )
            if data.startswith(b"\x93NUMPY"):
                return _npy(data)
            if data.startswith(b"PAR1"):
                return _parquet(source, looking)
            if data.startswith(b"SQLite format 3\0"):
                return list(_sqlite(data))
    except BadFileError as error:
        looking.missed.add(NOT_READ if "pickle" in error.what else DAMAGED, source.name)
        return []
    if not is_text(data):
        if not source.made:
            looking.missed.add(NOT_READ, source.name)
        return list(raw_blocks(data))
    return list(text_blocks(_utf8(data)))


def _utf8(data: bytes) -> bytes:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").removeprefix(b"\xef\xbb\xbf")


def raw_blocks(data: bytes) -> Iterator[Block]:
    """Of bytes of no known form: the texts in them, and what is numbers as they stand in memory."""
    for text in texts_in(data):
        yield from text_blocks(text)
    for numbers in raw_numbers(data):
        yield Block(numbers=numbers[:, None])


def text_blocks(data: bytes, depth: int = 0) -> Iterator[Block]:
    """JSON, JSON lines, csv, or lines with numbers."""
    head = data[:1].strip() or data[:200].strip()[:1]
    if head in (b"{", b"["):
        made = list(_json(data, depth))
        if made:
            yield from made
            return
    made = list(_csv(data, depth))
    yield from made
    if not made or any(_mixed(block) for block in made):
        yield from _lines(data)


def _mixed(block: Block) -> bool:
    """Whether cells hold numbers between other characters: the lines are rows too."""
    return any(
        any(_holds_rows(text) for text in texts[:LEAST].tolist()) for texts in block.words.values()
    )


def _lines(data: bytes) -> Iterator[Block]:
    """Lines with the same count of numbers are a block; a long word of digits is a row."""
    for word in _DIGITS.findall(data):
        yield Block(numbers=np.frombuffer(word, np.uint8).astype(np.float64)[:, None] - ord("0"))
    yield from _few(data.split(None, _FEW_ASKED)[:_FEW_ASKED], data.split)
    yield from _few(data.split(b"\n", _FEW_ASKED)[:_FEW_ASKED], lambda: data.split(b"\n"))
    tokens = _NUMBER.findall(data)
    count = len(tokens) - data.count(b"\n")
    if count < LEAST:
        return
    ends = np.fromiter((token == b"\n" for token in tokens), np.bool_, len(tokens))
    values = np.fromiter((float(token) for token in tokens if token != b"\n"), np.float64, count)
    each = np.bincount(np.cumsum(ends)[~ends], minlength=1)
    widths = Counter(each[each > 0].tolist())
    starts = np.cumsum(each) - each
    total = sorted(widths, key=lambda width: -width * widths[width])[:_GROUPS]
    for width in total:
        if width * widths[width] < LEAST:
            continue
        places = starts[each == width][:, None] + np.arange(width)
        yield Block(numbers=values[places])


def _few(first: list[bytes], split: Callable[[], list[bytes]]) -> Iterator[Block]:
    """Words, or lines, of few kinds, as a column."""
    if len(first) < LEAST or len(set(first)) > len(first) // 2 or _NUMBER.match(first[0]):
        return
    listed = np.array([word.decode("utf-8", "replace")[:200] for word in split()])
    yield Block(numbers=np.zeros((len(listed), 0)), words={"": listed})


def _csv(data: bytes, depth: int) -> Iterator[Block]:
    """Columns by a header line."""
    first, _, rest = data.partition(b"\n")
    mark = max((b",", b"\t", b";", b"|"), key=first.count)
    width = first.count(mark)
    second = rest.partition(b"\n")[0]
    if not width or second.count(mark) < width or len(data) > _MOST_CSV:
        return
    text = io.StringIO(data.decode("utf-8", "replace"), newline="")
    try:
        rows = list(itertools.islice(csv.reader(text, delimiter=mark.decode()), _MOST_ROWS))
    except csv.Error:
        return
    whole = [row for row in rows if len(row) == width + 1]
    if len(whole) < 3 or 10 * len(whole) < 9 * len([row for row in rows if row]):
        return
    head = [cell.strip() for cell in whole[0]]
    named = not any(_is_number(cell) for cell in head)
    body = whole[1:] if named else whole
    names = head if named else [""] * len(head)
    columns = {
        name or f"#{place}": [row[place] for row in body] for place, name in enumerate(names)
    }
    yield from _of_lists(columns, depth)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _json(data: bytes, depth: int) -> Iterator[Block]:
    try:
        yield from _tree(orjson.loads(data), depth)
        return
    except orjson.JSONDecodeError:
        pass
    rows = []
    for line in data.split(b"\n"):
        if line.strip():
            try:
                rows.append(orjson.loads(line))
            except orjson.JSONDecodeError:
                return
    yield from _tree(rows, depth)


def _tree(value: Any, depth: int) -> Iterator[Block]:
    """Every table in a JSON value: lists of objects, columns, lists of lists, lists of numbers."""
    if depth > _MOST_DEPTH:
        return
    if isinstance(value, str):
        # What looks like rows inside a text is read as a text of its own.
        if len(value) >= 2 * LEAST and any(mark in value for mark in ",\n\t ;"):
            yield from text_blocks(value.encode("utf-8", "replace"), depth + 1)
    elif isinstance(value, dict):
        lists = {name: part for name, part in value.items() if isinstance(part, list) and part}
        by_length: dict[int, dict[str, list[Any]]] = {}
        for name, part in lists.items():
            by_length.setdefault(len(part), {})[str(name)] = part
        for columns in by_length.values():
            if not any(isinstance(part[0], dict) for part in columns.values()):
                yield from _of_lists(columns, depth)
        for part in value.values():
            if isinstance(part, dict | str) or (
                isinstance(part, list) and part and isinstance(part[0], dict | list)
            ):
                yield from _tree(part, depth + 1)
        flat = [float(part) for part in value.values() if isinstance(part, int | float)]
        if len(flat) >= LEAST:
            yield Block(numbers=np.array([flat]))
        plain = {key: part for key, part in value.items() if isinstance(part, int | float | str)}
        if len(plain) >= LEAST:
            yield from _of_lists({"key": list(plain), "value": list(plain.values())}, depth)
    elif isinstance(value, list) and value:
        yield from _list(value, depth)


def _list(value: list[Any], depth: int) -> Iterator[Block]:
    if all(isinstance(row, dict) for row in value):
        keys = Counter(key for row in value for key in row)
        common = [key for key, count in keys.items() if count == len(value)]
        columns = {str(key): [row[key] for row in value] for key in common}
        yield from _of_lists(columns, depth)
        for key in common:
            if any(isinstance(part, dict) for part in columns[str(key)]):
                yield from _tree(columns[str(key)], depth + 1)
        if len(common) < len(keys):
            rest = [key for key in keys if key not in common]
            for key in rest[:50]:
                yield from _of_lists({str(key): [row[key] for row in value if key in row]}, depth)
    elif any(isinstance(row, dict | str) for row in value):
        yield from _of_lists({"": value}, depth)
        for row in value[:1000]:
            if isinstance(row, dict | list):
                yield from _tree(row, depth + 1)
    else:
        yield from _of_lists({"": value}, depth)
        if value and isinstance(value[0], list) and value[0] and isinstance(value[0][0], list):
            for row in value[:100]:
                yield from _tree(row, depth + 1)


def _of_lists(columns: Mapping[str, Sequence[Any]], depth: int = 0) -> Iterator[Block]:
    """Columns of cells: numbers, lists of numbers, or texts, which may hold rows themselves."""
    arrays: dict[str, NDArray[Any]] = {}
    inner: list[str] = []
    for name, cells in columns.items():
        numbers = _numeric(cells)
        if numbers is not None:
            arrays[name] = numbers
        elif any(isinstance(cell, str) for cell in cells):
            texts = [cell if isinstance(cell, str) else "" for cell in cells]
            arrays[name] = np.array([text[:200] for text in texts], dtype=np.str_)
            inner += [text for text in texts if _holds_rows(text)]
        elif any(isinstance(cell, list) for cell in cells):
            inner += [orjson.dumps(cell).decode() for cell in cells if isinstance(cell, list)]
    yield from _of_columns(arrays)
    if inner and depth <= _MOST_DEPTH:
        lines = "\n".join(text.replace("\n", " ") for text in inner)
        yield from _lines(lines.encode("utf-8", "replace"))


def _holds_rows(text: str) -> bool:
    return len(text) > 2 and sum(map(text.count, "0123456789")) >= 2


def _numeric(cells: Sequence[Any]) -> Numbers | None:
    kinds = {type(cell) for cell in cells}
    if not kinds <= {int, float, bool, str, list, type(None)} or kinds <= {type(None)}:
        return None
    try:
        if str in kinds:
            if kinds > {str, type(None)} or list in kinds:
                return None
            made = np.array([float(cell) if cell else np.nan for cell in cells])
        else:
            made = np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        return None
    return made if made.ndim and not np.isnan(made).all() else None


def _of_columns(arrays: Mapping[str, NDArray[Any]]) -> list[Block]:
    """Arrays of one length are a table."""
    by_length: dict[int, list[str]] = {}
    for name, array in arrays.items():
        if array.ndim and array.size:
            by_length.setdefault(len(array), []).append(name)
    made = []
    for length, members in by_length.items():
        parts, names, words = [], [], {}
        for name in members:
            array = arrays[name]
            if array.dtype.kind in "biuf":
                flat = array.reshape(length, -1).astype(np.float64)
                parts.append(flat)
                names += [name] * flat.shape[1]
            elif array.ndim == 1:
                words[name] = array.astype(str) if array.dtype.kind != "S" else _decoded(array)
        numbers = np.concatenate(parts, axis=1) if parts else np.zeros((length, 0))
        if numbers.size >= LEAST or words:
            made.append(Block(numbers=numbers, names=tuple(names), words=words))
            for texts in words.values():
                inner = [text for text in texts[:_MOST_ROWS].tolist() if _holds_rows(text)]
                if inner and max(map(len, inner)) > 8:
                    lines = "\n".join(text.replace("\n", " ") for text in inner)
                    made += list(_lines(lines.encode("utf-8", "replace")))
    return made


def _decoded(array: NDArray[Any]) -> Words:
    return np.char.decode(array, "utf-8", "replace")


def _npy(data: bytes) -> list[Block]:
    # Through an archive of one member: one reader of arrays that are not trusted is enough.
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("array.npy", data)
    packed.seek(0)
    return _of_columns(read_npz(packed, most_bytes=len(data)))


def _parquet(source: Source, looking: Looking) -> list[Block]:
    if optional("pyarrow") is None:
        looking.missed.add(NOT_READ, f"{source.name} (parquet needs pyarrow)")
        return []
    arrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
    file = parquet.ParquetFile(arrow.BufferReader(source.data))
    unpacked = sum(
        file.metadata.row_group(group).total_byte_size for group in range(file.num_row_groups)
    )
    if unpacked > looking.limits.file_bytes:
        raise BadFileError("unpacks to more than is read")
    table = file.read()
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    return list(_of_lists(columns))


def _sqlite(data: bytes) -> Iterator[Block]:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute("PRAGMA trusted_schema = OFF")
        database.deserialize(data)
        listed = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in listed.fetchall():
            quoted = '"' + str(table).replace('"', '""') + '"'
            rows = database.execute(f"SELECT * FROM {quoted} LIMIT {_MOST_ROWS}")
            names = [column[0] for column in rows.description]
            cells: Iterable[tuple[Any, ...]] = zip(*rows.fetchall(), strict=True)
            yield from _of_lists(dict(zip(names, map(list, cells), strict=False)))
