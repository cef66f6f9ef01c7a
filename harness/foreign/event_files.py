"""TensorBoard's event files: scalars out of TFRecords, without TensorFlow.

A record is its length (uint64, little-endian), the masked CRC-32C of the length, the data, and the
masked CRC-32C of the data (TensorFlow, core/lib/io/record_writer.h). The data is an `Event` in
protobuf's wire format: wall_time = 1, step = 2, summary = 5; in a summary `Value` = 1: tag = 1,
simple_value = 2, tensor = 8 (event.proto, summary.proto).
"""

import struct
from collections.abc import Iterator
from functools import cache

from harness.foreign.log_rows import Row, make_row
from harness.foreign.parser import LogHead, LogParser

_HEAD = 12
_MOST_BYTES = 64 << 20
"""Of one record: a larger length is damage."""
_SCALARS_WITHIN = 1 << 20
"""A longer record holds an image, a histogram or a graph."""
_FLOAT, _DOUBLE = 1, 2
"""DataType of a tensor."""


def recognise(head: LogHead) -> LogParser | None:
    return EventFile() if "tfevents" in head.path.name else None


class EventFile(LogParser):
    """One row a step, of the scalars of consecutive events."""

    name = "TensorBoard events"

    def __init__(self) -> None:
        super().__init__()
        self._data = b""
        self._held: Row | None = None
        self._broken = False

    def feed(self, data: bytes) -> list[Row]:
        if self._broken:
            return []
        self._data += data
        rows: list[Row] = []
        start = 0
        while (end := self._next(start)) is not None:
            payload = self._data[start + _HEAD : end - 4]
            if len(payload) <= _SCALARS_WITHIN:
                rows += self._event(payload, self._data[end - 4 : end])
            start = end
        self._data = b"" if self._broken else self._data[start:]
        return rows

    def finish(self) -> list[Row]:
        held, self._held = self._held, None
        return [held] if held is not None else []

    def _next(self, start: int) -> int | None:
        """The end of the record at `start`; None while it is incomplete."""
        if len(self._data) < start + _HEAD:
            return None
        length, check = struct.unpack_from("<QI", self._data, start)
        if check != _masked(self._data[start : start + 8]) or length > _MOST_BYTES:
            # Records have no start mark, so after a wrong length the next one cannot be located.
            self.warnings.add("a record is damaged; the rest of the file cannot be read")
            self._broken = True
            return None
        end = start + _HEAD + int(length) + 4
        return end if len(self._data) >= end else None

    def _event(
        self,
        payload: bytes,
        check: bytes,
    ) -> Iterator[Row]:
        if struct.unpack("<I", check)[0] != _masked(payload):
            self.warnings.add("the data of a record is damaged; the record was left out")
            return
        try:
            step, wall_time, values = _scalars(payload)
        except (ValueError, IndexError, struct.error):
            self.warnings.add("an event could not be read; it was left out")
            return
        row = make_row(
            [*values, ("step", step), ("wall_time", wall_time)],
        )
        if row is None:
            return
        # Most writers log one tag an event. A tag that repeats within a step begins a new row: it
        # is a later measurement.
        held = self._held
        if held is not None and held.get("step") == row.get("step"):
            known: dict[str, float] = held["metrics"]
            if not known.keys() & row["metrics"].keys():
                known.update(row["metrics"])
                return
        if held is not None:
            yield held
        self._held = row


def _scalars(event: bytes) -> tuple[int, float, list[tuple[str, float]]]:
    """(step, wall time, [(tag, value)]) of one Event."""
    step, wall_time = 0, 0.0
    values: list[tuple[str, float]] = []
    for field, value in _fields(event):
        if field == 1 and isinstance(value, bytes):
            wall_time = struct.unpack("<d", value)[0]
        elif field == 2 and isinstance(value, int):
            step = value
        elif field == 5 and isinstance(value, bytes):
            values += [
                scalar
                for number, inner in _fields(value)
                if number == 1 and (scalar := _value(inner)) is not None
            ]
    return step, wall_time, values


def _value(data: int | bytes) -> tuple[str, float] | None:
    tag, number = "", None
    for field, value in _fields(data) if isinstance(data, bytes) else ():
        if not isinstance(value, bytes):
            continue
        if field == 1:
            tag = value.decode("utf-8", "replace")
        elif field == 2 and len(value) == 4:
            number = struct.unpack("<f", value)[0]
        elif field == 8:
            number = _tensor(value)
    return None if number is None or not tag else (tag, number)


def _tensor(data: bytes) -> float | None:
    """The number of a float32 or float64 tensor with one element; None for any other tensor."""
    # TensorFlow 2 writes scalars so: as raw `tensor_content`, or packed float_val or double_val.
    kind, content, packed = 0, b"", b""
    for field, value in _fields(data):
        if field == 1 and isinstance(value, int):
            kind = value
        elif field == 4 and isinstance(value, bytes):
            content = value
        elif field in (5, 6) and isinstance(value, bytes):
            packed = value
    size, code = {_FLOAT: (4, "<f"), _DOUBLE: (8, "<d")}.get(kind, (0, ""))
    raw = content or packed
    return struct.unpack(code, raw)[0] if size and len(raw) == size else None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, value) of a message: varints as integers, everything else as its bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        # Wire types: 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes.
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = _varint(data, at)
        else:
            length = {1: 8, 5: 4}[kind] if kind in (1, 5) else len(data) + 1
        if at + length > len(data):
            raise ValueError("the message ends within a field")
        yield key >> 3, data[at : at + length]
        at += length


def _varint(
    data: bytes,
    at: int,
) -> tuple[int, int]:
    """(value, its end)."""
    # Seven bits a byte, lowest first; the top bit says that another byte follows. A negative int64
    # is written as an unsigned number of 64 bits.
    value = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            value &= (1 << 64) - 1
            return (value - (1 << 64) if value >> 63 else value), at
        shift += 7
    raise ValueError("a varint has more than 64 bits")


@cache
def _table() -> tuple[int, ...]:
    """CRC-32C (Castagnoli), reflected polynomial 0x82F63B78."""
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


def _masked(data: bytes) -> int:
    table, value = _table(), 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF
