"""What a training command prints, copied into files that have a largest size."""

import os
import threading
from pathlib import Path
from typing import IO

MOST_BYTES = 64 * 1024 * 1024
_NOTE = b"\n[harness: output beyond %d bytes was dropped]\n"


class Pump:
    """Copies one pipe into a new file, with `further` behind what a resumed run printed before, until the pipe's last
    writer is gone; beyond the limit it reads and drops.

    A pipe rather than the file itself: it bounds the file whatever the command does, and a command that prints ends
    when its supervisor was killed.
    """

    def __init__(self, stream: IO[bytes], path: Path, *, most_bytes: int = MOST_BYTES, further: bool = False) -> None:
        self._stream, self._most = stream, most_bytes
        how = os.O_APPEND | os.O_NOFOLLOW if further else os.O_EXCL
        self._target = os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o644)
        self._written = os.fstat(self._target).st_size
        self.cut = False
        self._thread = threading.Thread(target=self._copy, name=f"pump {path.name}", daemon=True)
        self._thread.start()

    def finish(self, seconds: float) -> None:
        """Wait for the rest. A process that could not be ended may hold the pipe open longer than `seconds`."""
        self._thread.join(seconds)

    def _copy(self) -> None:
        written = self._written
        try:
            with self._stream:
                while block := os.read(self._stream.fileno(), 1 << 16):
                    kept = block[: self._most - written]
                    written += len(kept)
                    self._write(kept)
                    if len(kept) < len(block) and not self.cut:
                        self.cut = True
                        self._write(_NOTE % self._most)
        finally:
            os.close(self._target)

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._target, data) :]
