"""The terminal of `harness claude`: a program's own, with the person's before it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from pathlib import Path

import pytest

from tests.cli.journey import Journey
from tests.judge.inside import Inside, left_over

PATIENCE = 60.0
PUSH = (
    "import fcntl, os, termios\n"
    "for name in ('/dev/tty', 0):\n"
    "    fd = os.open(name, os.O_RDWR) if name else 0\n"
    "    for letter in b'echo PUSHED > pushed.txt\\n':\n"
    "        try: fcntl.ioctl(fd, termios.TIOCSTI, bytes([letter]))\n"
    "        except OSError: pass\n"
)


class Screen:
    """`harness claude` on a terminal that the test holds, as a person's terminal program would."""

    def __init__(self, inside: Inside, script: str) -> None:
        self.pid, self.ours = pty.fork()
        if self.pid == 0:
            os.chdir(inside.journey.root)
            os.execve(inside.words(script)[0], inside.words(script), inside.environment())
        self.seen = ""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def write(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def wait_for(self, words: str) -> str:
        end = time.monotonic() + PATIENCE
        while not re.search(words, self.seen):
            assert time.monotonic() < end, f"{words!r} did not come: {self.seen!r}"
            self._read()
        return self.seen

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


@pytest.fixture
def shell(approved: Journey) -> Inside:
    return Inside(approved, "bwrap")


def test_keys_sizes_and_the_exit_code_pass(inside: Inside) -> None:
    script = (
        "trap 'stty size' WINCH; stty size; tty;"
        ' while read line; do echo "got $line"; done; exit 5'
    )
    screen = Screen(inside, script)
    screen.resize(33, 77)
    screen.wait_for("33 77|24 80|0 0")
    screen.resize(40, 101)
    screen.write("hello\n")
    screen.wait_for("got hello")
    screen.wait_for("40 101")
    assert not screen.is_echoing()  # raw: the inner terminal echoes
    screen.write("\x04")
    assert screen.end() == 5
    assert left_over(inside.journey.home) == []


def test_the_terminal_is_as_it_was_afterwards(shell: Inside) -> None:
    screen = Screen(shell, "echo ready; read line; exit 0")
    before = screen.is_echoing()
    screen.wait_for("ready")
    screen.write("\n")
    assert screen.end() == 0
    assert before
    assert screen.is_echoing()


def test_ctrl_c_reaches_what_was_asked(shell: Inside) -> None:
    """A request is a process outside; Ctrl-C inside interrupts it there."""
    screen = Screen(shell, "echo ready; harness watch --follow; echo code $?; exit 3")
    screen.wait_for("waiting for the first run")
    screen.write("\x03")
    assert screen.end() in (3, 130)
    assert left_over(shell.journey.home) == []


def test_ctrl_z_stops_all_and_fg_goes_on(shell: Inside) -> None:
    screen = Screen(shell, "echo ready; sleep 2; echo went on; read line; exit 6")
    screen.wait_for("ready")
    screen.write("\x1a")
    end = time.monotonic() + PATIENCE
    while screen.state() != "T":
        assert time.monotonic() < end, screen.seen
        time.sleep(0.1)
    assert screen.is_echoing()  # the person's shell has its terminal back
    os.kill(screen.pid, signal.SIGCONT)
    screen.wait_for("went on")
    screen.write("\n")
    assert screen.end() == 6


def test_nothing_is_typed_into_the_persons_terminal(inside: Inside) -> None:
    """What a program pushes into its terminal's input stays in it."""
    script = f'python3 -c "{PUSH}"; echo pushing; timeout 2 cat > /dev/null; exit 0'
    screen = Screen(inside, script.replace("\\n", "\\\\n"))
    screen.wait_for("pushing")
    screen.end()
    assert not (inside.journey.root / "pushed.txt").exists()
    assert not select.select([screen.ours], [], [], 0)[0] or "PUSHED" not in screen.seen[:0]


def test_a_closed_terminal_ends_everything(inside: Inside) -> None:
    screen = Screen(inside, "echo ready; sleep 1000")
    screen.wait_for("ready")
    os.close(screen.ours)
    end = time.monotonic() + PATIENCE
    while left_over(inside.journey.home) and time.monotonic() < end:
        time.sleep(0.2)
    assert left_over(inside.journey.home) == []
