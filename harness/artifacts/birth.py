"""When a file was made: moving, linking and writing leave its birth, and no program can set it."""

import ctypes
import functools
import os
import struct
from collections.abc import Callable
from pathlib import Path

# Python's os.stat has it on macOS only; Linux tells it through statx.
_HERE, _NO_FOLLOW, _BIRTH, _STATX_BYTES = -100, 0x100, 0x800, 256
_BIRTH_AT = 80
"""Offset in struct statx, which begins with a mask of what is known: seconds (64 bits), nanoseconds
(32 bits)."""


def birth_time(path: Path) -> float | None:
    """When the file or folder was made, by its file system's clock; a link is not followed. None
    where that file system does not keep it. Raises OSError."""
    status = os.lstat(path)
    known: float | None = getattr(status, "st_birthtime", None)
    if known is not None:
        return known
    call = _statx()
    if call is None:
        return None
    answer = ctypes.create_string_buffer(_STATX_BYTES)
    if call(_HERE, os.fsencode(path), _NO_FOLLOW, _BIRTH, answer) != 0:
        return None
    (mask,) = struct.unpack_from("=I", answer, 0)
    seconds, nanoseconds = struct.unpack_from("=qI", answer, _BIRTH_AT)
    # The same sum as os.stat makes: two times are equal here when they are equal there.
    return float(seconds + 1e-9 * nanoseconds) if mask & _BIRTH and seconds else None


@functools.cache
def _statx() -> Callable[..., int] | None:
    try:
        call: Callable[..., int] = ctypes.CDLL(None).statx
    except (OSError, AttributeError):  # another system, or an old C library
        return None
    return call
