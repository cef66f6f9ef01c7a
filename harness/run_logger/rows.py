"""The file behind metrics.jsonl, opened once: each row is one O_APPEND write on a fresh line, not
synced."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

_TAIL_BYTES = 64 * 1024


class RowFile:
    """One writer's view of `path`. A torn last line is closed first, so that the next row is
    whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._torn = False

    def last_row(self) -> dict[str, Any] | None:
        """The last readable row; None when there is no file or nothing in it. An empty row when
        none of the last 64 KiB is readable."""
        try:
            with self._path.open("rb") as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - _TAIL_BYTES))
                lines = stream.read().split(b"\n")
        except FileNotFoundError:
            return None
        for line in reversed(lines):
            with contextlib.suppress(ValueError, RecursionError):
                row = json.loads(line)
                if isinstance(row, dict):
                    return row
        return {} if any(line.strip() for line in lines) else None

    def append(self, line: bytes) -> None:
        """`line` is a row with its line end. Raises OSError when the disk is full; what was written
        of the row is then closed by the next one."""
        descriptor = self._open() if self._descriptor is None else self._descriptor
        payload = b"\n" + line if self._torn else line
        self._torn = True
        written = os.write(descriptor, payload)
        while written < len(payload):  # only a full disk or a signal gets here
            written += os.write(descriptor, payload[written:])
        self._torn = False

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        size = os.fstat(descriptor).st_size
        self._torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        self._descriptor = descriptor
        return descriptor
