"""A person's terminal that a test holds: it reads what comes, and types."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PATIENCE = 60.0


class Screen:
    """A command on a terminal that the test holds, as a person's terminal program would. `seen` is
    all that came, escape sequences and all."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], cwd: Path) -> None:
        self.pid, self.ours = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(words[0], words, environment)
        self.seen = ""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def write(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def wait_for(self, words: str, *, times: int = 1) -> str:
        """Wait until the pattern `words` came so many times; returns what came last of it."""
        end = time.monotonic() + PATIENCE
        while len(found := [item[0] for item in re.finditer(words, self.seen)]) < times:
            assert time.monotonic() < end, f"{words!r} did not come: {self.seen!r}"
            self._read()
        return found[-1]

    def _read(self) -> None:
        if select.select([self.ours], [], [], 0.1)[0]:
            try:
                self.seen += os.read(self.ours, 65536).decode("utf-8", "replace")
            except OSError:
                time.sleep(0.1)

    def is_echoing(self) -> bool:
        return bool(termios.tcgetattr(self.ours)[3] & termios.ECHO)

    def end(self) -> int:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            self._read()
        raise AssertionError(f"it did not end: {self.seen!r}")

    def state(self) -> str:
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
