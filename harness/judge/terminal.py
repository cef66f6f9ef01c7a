"""A program on a terminal of its own, and the person's terminal before it: bytes are copied both
ways, sizes too. The person's can be lent to another use for a while; then nothing is copied."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import tty
from collections.abc import (
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from types import FrameType
from typing import Any

_BLOCK = 1 << 16
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""Passed on; the process in front of the sandbox ends what does not heed them."""
_LOOK_SECONDS = 0.5
_MOST_LAST = 64
"""Blocks that are still shown before the terminal is lent: a program may write without end."""
_ALTERNATE = re.compile(rb"\x1b\[\?(?:1049|1047|47)([hl])")
_LONGEST_SWITCH = 7
_REDRAW_SECONDS = 0.1
_SIZE = struct.Struct("4H")


class LedProgram:
    """One program, led from its start to its end by `run`."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], cwd: Path) -> None:
        self._command, self._environment, self._cwd = list(command), dict(environment), cwd
        self._wake, self._waker = os.pipe()
        self._loans: list[tuple[Callable[[], None], threading.Event]] = []
        self._leading = False
        self._tail = b""
        self._ended_by = 0
        self._before: list[Any] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.alternate = False
        """Whether it shows the terminal's second screen, which has no lines above it."""

    @property
    def ending(self) -> bool:
        """Whether a signal ends us, e.g. because the terminal was closed."""
        return bool(self._ended_by)

    def run(self) -> int:
        """Its exit code; 128 + n when signal n ended us before it."""
        with self._signals():
            if not (sys.stdin.isatty() and sys.stdout.isatty()):
                self.process = self._start(None)
                return self._code(self.process.wait())
            ours, theirs = pty.openpty()
            try:
                _copy_size(ours)
                self._leading = True
                self.process = self._start(theirs)
                os.close(theirs)
                with self._raw():
                    self._copy(ours, self.process)
                return self._code(self.process.wait())
            finally:
                self._leading = False
                os.close(ours)

    def stop(self) -> None:
        """For another thread, once the program has stopped: give the terminal back and stop as
        well; returns when the person goes on."""
        # Not SIGTSTP: the kernel drops it where no shell stands above.
        self.lend(lambda: os.kill(os.getpid(), signal.SIGSTOP))

    def lend(self, use: Callable[[], None], done: threading.Event | None = None) -> bool:
        """For another thread: `use` gets the person's terminal as it was before. It is called by
        the thread that leads, so it may wait for signals. Returns when it has returned, or `done`
        is set; False when there is no terminal, or no longer."""
        returned = threading.Event()
        self._loans.append((use, returned))
        os.write(self._waker, b"l")
        awaited = done or returned
        while self._leading and not awaited.wait(_LOOK_SECONDS):
            pass
        return awaited.is_set()

    def _start(self, terminal: int | None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            env=self._environment,
            cwd=self._cwd,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )

    def _code(self, code: int) -> int:
        if self._ended_by:
            return 128 + self._ended_by
        return code if code >= 0 else 128 - code

    def _copy(self, ours: int, process: subprocess.Popen[bytes]) -> None:
        """Until the program's side is closed by all that held it."""
        sources = [0, ours, self._wake]
        while True:
            ready, _, _ = select.select(sources, [], [], _LOOK_SECONDS)
            if ours in ready and not self._shown(ours):
                return
            if not ready and process.poll() is not None:
                return
            if 0 in ready and not _passed(0, ours):
                sources.remove(0)  # the terminal is closed
                self._end(signal.SIGHUP)
            if self._wake in ready:
                os.read(self._wake, _BLOCK)
                _copy_size(ours)
                while self._loans:
                    self._lent(ours, *self._loans.pop(0))

    def _shown(self, ours: int) -> bool:
        """Show what the program wrote; False at its end."""
        block = _passed(ours, 1)
        self._tail = self._tail[-_LONGEST_SWITCH:] + block
        if switches := _ALTERNATE.findall(self._tail):
            self.alternate = switches[-1] == b"h"
        return bool(block)

    def _lent(self, ours: int, use: Callable[[], None], returned: threading.Event) -> None:
        for _ in range(_MOST_LAST):  # what it wrote last puts the screen in order
            if not select.select([ours], [], [], 0)[0] or not self._shown(ours):
                break
        with contextlib.suppress(termios.error):  # it was closed
            termios.tcsetattr(0, termios.TCSADRAIN, self._before)
        try:
            use()
        finally:
            with contextlib.suppress(termios.error):
                tty.setraw(0)  # what was typed meanwhile is dropped
            _copy_size(ours, less=1)  # another size makes the program draw its screen anew
            time.sleep(_REDRAW_SECONDS)
            _copy_size(ours)
            returned.set()

    @contextlib.contextmanager
    def _raw(self) -> Iterator[None]:
        """Keys go through as they come; afterwards the terminal is as it was."""
        self._before = termios.tcgetattr(0)
        tty.setraw(0)
        try:
            yield
        finally:
            with contextlib.suppress(termios.error):  # it was closed
                termios.tcsetattr(0, termios.TCSADRAIN, self._before)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        before = {number: signal.getsignal(number) for number in (*_ENDING, signal.SIGWINCH)}
        for number in _ENDING:
            signal.signal(number, self._take)
        signal.signal(signal.SIGWINCH, self._resized)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _resized(self, _number: int, _frame: FrameType | None) -> None:
        os.write(self._waker, b"w")

    def _take(self, number: int, _frame: FrameType | None) -> None:
        self._end(number)

    def _end(self, number: int) -> None:
        self._ended_by = self._ended_by or number
        if self.process is not None:
            self.process.send_signal(number)


def _copy_size(ours: int, *, less: int = 0) -> None:
    """Give the program the size of the person's terminal, `less` rows of it."""
    with contextlib.suppress(OSError):
        rows, *rest = _SIZE.unpack(fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * _SIZE.size))
        fcntl.ioctl(ours, termios.TIOCSWINSZ, _SIZE.pack(max(rows - less, 0), *rest))


def _passed(source: int, target: int) -> bytes:
    """Copy what is there, and return it; empty when the source is at its end, or the target is
    gone."""
    try:
        block = os.read(source, _BLOCK)
        left = block
        while left:
            left = left[os.write(target, left) :]
    except OSError:
        return b""
    return block
