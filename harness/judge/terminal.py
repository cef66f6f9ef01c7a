"""A program on a terminal of its own, and the person's terminal before it: bytes are copied both
ways, sizes too."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import threading
import tty
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

_BLOCK = 1 << 16
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""Passed on; the process in front of the sandbox ends what does not heed them."""
_LOOK_SECONDS = 0.5


class LedProgram:
    """One program, led from its start to its end by `run`."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], cwd: Path) -> None:
        self._command, self._environment, self._cwd = list(command), dict(environment), cwd
        self._wake, self._waker = os.pipe()
        self._stops: list[threading.Event] = []
        self._ended_by = 0
        self._before: list[Any] = []
        self.process: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Its exit code; 128 + n when signal n ended us before it."""
        with self._signals():
            if not (sys.stdin.isatty() and sys.stdout.isatty()):
                self.process = self._start(None)
                return self._code(self.process.wait())
            ours, theirs = pty.openpty()
            try:
                _copy_size(ours)
                self.process = self._start(theirs)
                os.close(theirs)
                with self._raw():
                    self._copy(ours, self.process)
                return self._code(self.process.wait())
            finally:
                os.close(ours)

    def stop(self) -> None:
        """For another thread, once the program has stopped: give the terminal back and stop as
        well; returns when the person goes on."""
        went_on = threading.Event()
        self._stops.append(went_on)
        os.write(self._waker, b"s")
        went_on.wait()

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
            if ours in ready and not _passed(ours, 1):
                return
            if not ready and process.poll() is not None:
                return
            if 0 in ready and not _passed(0, ours):
                sources.remove(0)  # the terminal is closed
                self._end(signal.SIGHUP)
            if self._wake in ready:
                os.read(self._wake, _BLOCK)
                _copy_size(ours)
                while self._stops:
                    self._stopped(ours, self._stops.pop())

    def _stopped(self, ours: int, went_on: threading.Event) -> None:
        while select.select([ours], [], [], 0)[0] and _passed(ours, 1):
            pass  # what it wrote last puts the screen in order
        termios.tcsetattr(0, termios.TCSADRAIN, self._before)
        # Not SIGTSTP: the kernel drops it where no shell stands above.
        os.kill(os.getpid(), signal.SIGSTOP)
        tty.setraw(0)
        _copy_size(ours)
        went_on.set()

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


def _copy_size(ours: int) -> None:
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(ours, termios.TIOCSWINSZ, size)


def _passed(source: int, target: int) -> bool:
    """Copy what is there; False when the source is at its end, or the target is gone."""
    try:
        block = os.read(source, _BLOCK)
        left = block
        while left:
            left = left[os.write(target, left) :]
    except OSError:
        return False
    return bool(block)
