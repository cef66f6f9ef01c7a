"""What a training command prints, copied into files that have a largest size."""

import os
import threading
from pathlib import Path
from typing import IO

MOST_BYTES = 64 * 1024 * 1024
_NOTE = b"\n[harness: output beyond %d bytes was dropped]\n"


class Pump:
    """Copies one pipe into a new file, with `further` behind what a resumed run printed before,
    until the pipe's last writer is gone; beyond the limit it reads and drops. The file is opened at
    once, the copying begins with `start`.

    A pipe rather than the file itself: it bounds the file whatever the command does, and a command
    that prints ends when its supervisor was killed.
    """

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES, further: bool = False) -> None:
        """Raises OSError."""
        self._most = most_bytes
        how = os.O_APPEND | os.O_NOFOLLOW if further else os.O_EXCL
        self._target = os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o644)
        self._name = path.name
        self.cut = False
        self._thread: threading.Thread | None = None

    def start(self, stream: IO[bytes]) -> None:
        """From now on stream and file are the copying's, and closed by it. Raises RuntimeError when
        the machine has no thread left."""
        thread = threading.Thread(
            target=self._copy, args=(stream,), name=f"pump {self._name}", daemon=True
        )
        thread.start()
        self._thread = thread

    def close(self) -> None:
        """Of one that did not start."""
        if self._thread is None:
            os.close(self._target)

    def finish(self, seconds: float) -> None:
        """Wait for the rest. A process that could not be ended may hold the pipe open longer than
        `seconds`."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _copy(self, stream: IO[bytes]) -> None:
        written = os.fstat(self._target).st_size
        try:
            with stream:
                while block := os.read(stream.fileno(), 1 << 16):
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
