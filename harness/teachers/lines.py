"""JSON lines that programs and services write: read without trust, written to the disk at once."""

import os
from pathlib import Path
from typing import Any

import orjson


def object_of(data: bytes | str) -> dict[str, Any]:
    """The JSON object that `data` is; an empty one for anything else."""
    try:
        read = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    return read if isinstance(read, dict) else {}


def append_line(path: Path, line: bytes) -> None:
    """Append and flush to the disk; the file is its owner's alone. A torn last line gets an end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, (b"\n" if torn else b"") + line + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
