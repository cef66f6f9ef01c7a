"""Numbers and texts in bytes of no known form: arrays as they stand in memory, in a pickle or
another container, and packed bits."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TEXT = re.compile(rb"[\t\n\r\x20-\x7e]{64,}")
_MOST = 16 << 20
_MOST_BITS = 8 << 10
_LEAST = 64
"""Numbers in a row that no accident makes: of random bytes a fifth could be a float32."""
_SMALL, _LARGE = 1e-6, 1e9


def texts_in(data: bytes) -> list[bytes]:
    return _TEXT.findall(data)


def raw_numbers(data: bytes) -> Iterator[NDArray[np.float64]]:
    """float64 and float32 at any place, and in short data bytes and bits, from both ends."""
    if len(data) <= _MOST:
        for kind in (np.dtype("<f8"), np.dtype("<f4")):
            for start in range(kind.itemsize):
                yield from _floats(data, kind, start)
    if len(data) <= _MOST_BITS:
        whole = np.frombuffer(data, np.uint8)
        yield whole.astype(np.float64)
        for order in ("big", "little"):
            yield np.unpackbits(whole, bitorder=order).astype(np.float64)


def _floats(data: bytes, kind: "np.dtype[Any]", start: int) -> Iterator[NDArray[np.float64]]:
    count = (len(data) - start) // kind.itemsize
    if count < _LEAST:
        return
    values = np.frombuffer(data, kind, count, start)
    size = np.abs(values)
    with np.errstate(invalid="ignore"):
        usual = (size == 0) | ((size > _SMALL) & (size < _LARGE))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], usual, [False]]).astype(np.int8)))
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        part = values[begin:end].astype(np.float64)
        if len(part) >= _LEAST and part.any():
            yield part
