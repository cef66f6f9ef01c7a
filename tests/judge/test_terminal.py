"""The terminal of `harness claude`: a program's own, with the person's before it."""

import os
import select
import signal
import time

import pytest

from tests.cli.journey import Journey
from tests.judge.inside import Inside, left_over
from tests.screen import PATIENCE

PUSH = (
    "import fcntl, os, termios\n"
    "for name in ('/dev/tty', 0):\n"
    "    fd = os.open(name, os.O_RDWR) if name else 0\n"
    "    for letter in b'echo PUSHED > pushed.txt\\n':\n"
    "        try: fcntl.ioctl(fd, termios.TIOCSTI, bytes([letter]))\n"
    "        except OSError: pass\n"
)


@pytest.fixture
def shell(approved: Journey) -> Inside:
    return Inside(approved, "bwrap")


def test_keys_sizes_and_the_exit_code_pass(inside: Inside) -> None:
    script = (
        "trap 'stty size' WINCH; stty size; tty;"
        ' while read line; do echo "got $line"; done; exit 5'
    )
    screen = inside.on_screen(script)
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
    screen = shell.on_screen("echo ready; read line; exit 0")
    before = screen.is_echoing()
    screen.wait_for("ready")
    screen.write("\n")
    assert screen.end() == 0
    assert before
    assert screen.is_echoing()


def test_ctrl_c_reaches_what_was_asked(shell: Inside) -> None:
    """A request is a process outside; Ctrl-C inside interrupts it there."""
    screen = shell.on_screen("echo ready; harness watch --follow; echo code $?; exit 3")
    screen.wait_for("waiting for the first run")
    screen.write("\x03")
    assert screen.end() in (3, 130)
    assert left_over(shell.journey.home) == []


def test_ctrl_z_stops_all_and_fg_goes_on(shell: Inside) -> None:
    screen = shell.on_screen("echo ready; sleep 2; echo went on; read line; exit 6")
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
    screen = inside.on_screen(script.replace("\\n", "\\\\n"))
    screen.wait_for("pushing")
    screen.end()
    assert not (inside.journey.root / "pushed.txt").exists()
    assert not select.select([screen.ours], [], [], 0)[0] or "PUSHED" not in screen.seen[:0]


def test_a_closed_terminal_ends_everything(inside: Inside) -> None:
    screen = inside.on_screen("echo ready; sleep 1000")
    screen.wait_for("ready")
    os.close(screen.ours)
    end = time.monotonic() + PATIENCE
    while left_over(inside.journey.home) and time.monotonic() < end:
        time.sleep(0.2)
    assert left_over(inside.journey.home) == []
