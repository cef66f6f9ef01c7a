"""A person's verb that a session asks for: put to the person on their terminal, and run as theirs.

While the question stands nothing is copied: what is typed does not reach the session, and nothing
of the session reaches the screen. The code that the person types is drawn anew each time and shown
there alone; keys typed before it, and what the terminal itself answered to the session's last
bytes, are dropped. So neither the session, nor keys that were meant for it, confirm anything. What
is confirmed runs as if typed in another terminal: with the person's environment, on the person's
terminal, below no agent.
"""

import contextlib
import os
import secrets
import select
import shlex
import signal
import subprocess
import termios
import textwrap
import threading
import time
from collections.abc import (
    Iterator,
    Mapping,
)
from pathlib import Path

from harness.domain.plain_text import plain
from harness.errors import RefusedError
from harness.judge.requests import Request
from harness.judge.terminal import LedProgram
from harness.process import (
    ended,
    harness_command,
)

MOST_REFUSED = 3
"""In a row; then the session asks no more."""
ANSWER_SECONDS = 90.0
"""Less than the CLI gives a command of its shell."""
_BACK_SECONDS = 60.0
_SETTLE_SECONDS = 0.5
"""For what a terminal at the far end of a line answers to the session's last bytes."""
_LOOK_SECONDS = 0.2
_IN_ORDER = (
    "\x18\x1b\\"  # the end of a sequence that the session began
    "\x1b[!p\x1b[0m\x1b[r\x1b[?6l\x1b[?7h\x1b[4l\x1b[?25h\x1b%G\x1b(B\x0f"
)
"""Colours, margins, modes and characters as a terminal has them at first."""
_LEAVE, _ENTER = "\x1b[?1049l", "\x1b[?1049h"


class Asker:
    """Asks the person in front of `led`, one question at a time. `present` says whether a person is
    there at all: not for `claude -p`."""

    def __init__(
        self, led: LedProgram, root: Path, inherited: Mapping[str, str], *, present: bool
    ) -> None:
        self._led, self._root, self._inherited = led, root, inherited
        self._present = present
        self._one = threading.Lock()
        self._refused = 0

    def ask(self, request: Request) -> int:
        """The exit code of what was asked, when the person ran it. Raises RefusedError."""
        if not self._one.acquire(blocking=False):
            raise RefusedError(
                "Another question of this session stands on the person's terminal.",
                hint="Wait for its answer, then ask again if it is still needed.",
                code="question_open",
            )
        try:
            return self._asked(request)
        finally:
            self._one.release()

    def _asked(self, request: Request) -> int:
        elsewhere = (
            f"A person can run it in a terminal of their own: `cd {shlex.quote(str(self._root))}"
            f" && {request.asked}`."
        )
        if self._refused >= MOST_REFUSED:
            raise RefusedError(
                f"The last {MOST_REFUSED} questions of this session were refused or not answered,"
                " so the person is asked no more.",
                hint=f"Say in your answer what they should decide, and why. {elsewhere}",
                code="refused_too_often",
            )
        question = _Question(self._led, request, self._root, self._inherited)
        if not self._present or not self._led.lend(question.put, question.done):
            raise RefusedError(
                f"`{request.asked}` is a person's, and nobody can be asked here: the session has no"
                " terminal with a person before it.",
                hint=elsewhere,
                code="human_verb",
            )
        if question.exit_code is not None:
            self._refused = 0
            return question.exit_code
        if question.trouble:
            raise RefusedError(
                f"`{request.asked}` was not run, and nobody refused it: {question.trouble}.",
                hint=elsewhere,
                code="human_verb",
            )
        self._refused += 1
        raise RefusedError(
            f"The person refused `{request.asked}`."
            if question.answered
            else f"Nobody answered within {ANSWER_SECONDS:g} seconds, so `{request.asked}` was not"
            " run.",
            hint=(
                f"{MOST_REFUSED - self._refused} more may be refused before the person is asked no"
                f" more in this session. {elsewhere}"
            ),
            code="person_refused" if question.answered else "nobody_answered",
        )


class _Question:
    """`put` is for the thread that leads the session's program; `done` is set once the answer is
    known."""

    def __init__(
        self, led: LedProgram, request: Request, root: Path, inherited: Mapping[str, str]
    ) -> None:
        self._led, self._request, self._root = led, request, root
        self._environment = dict(inherited)
        self._interrupted = False
        self.done = threading.Event()
        self.answered = True
        """False when nobody did within the time."""
        self.exit_code: int | None = None
        """Of what the person ran; None when it was not confirmed."""
        self.trouble = ""
        """Why it could be neither asked nor run: then nobody refused."""

    def put(self) -> None:
        try:
            with self._ctrl_c():
                self._put()
        except (OSError, termios.error) as error:  # the terminal may be closed
            self.trouble = f"their terminal does not answer ({plain(str(error))})"
        finally:
            self.done.set()

    def _put(self) -> None:
        _set_modes()
        _write(_IN_ORDER + (_LEAVE if self._led.alternate else ""))
        _new_page()
        asked = self._request.asked
        _write(
            f"harness: this Claude session asks you to run\n\n    {asked}\n\n"
            f"It is a person's decision, and runs as yours.\n{_folded(self._then())}\n"
            "If you did not expect it, press Enter.\n\n"
        )
        time.sleep(_SETTLE_SECONDS)
        code = f"{secrets.randbelow(10_000):04}"
        termios.tcflush(0, termios.TCIFLUSH)
        _write(
            f"To run it, type {code} and press Enter.\nAnything else refuses it, and so do"
            f" {ANSWER_SECONDS:g} seconds without an answer.\n> "
        )
        typed = self._line(ANSWER_SECONDS)
        self.answered = typed is not None
        if typed == code:
            try:
                self.exit_code = self._run()
            except OSError as error:
                self.trouble = f"it did not start ({plain(str(error))})"
            self.done.set()
            ended_how = self.trouble or f"exit {self.exit_code}"
            with contextlib.suppress(OSError):  # the terminal may be closed
                _write(f"\nharness: {ended_how}. Press Enter to go back to Claude.\n")
                self._line(_BACK_SECONDS)
        with contextlib.suppress(OSError):
            _new_page()
            _write(_ENTER if self._led.alternate else "")

    def _then(self) -> str:
        if "--ask" in self._request.words:
            return "It first shows what would count from then on, and asks again."
        look = ""
        if self._request.words[0] == "keep":
            look = "It looks at held-out where that was not done; looks are counted. "
        if any(word.startswith("--reason") for word in self._request.words):
            return f"{look}The reason is in Claude's words; it is recorded as yours."
        return f"{look}The numbers that were measured are recorded as the reason."

    def _line(self, seconds: float) -> str | None:
        """What is typed before Enter, without what a terminal reports by itself; None when nothing
        comes."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self._led.ending:
            if self._interrupted:
                self._interrupted = False
                return ""
            if select.select([0], [], [], min(left, _LOOK_SECONDS))[0]:
                return plain(os.read(0, 4096).decode("utf-8", "replace")).strip()
        return None

    def _run(self) -> int:
        child = subprocess.Popen(
            harness_command(*self._request.words),
            cwd=self._root,
            env=self._environment,
            stdin=0,
            stdout=1,
            stderr=1,
            process_group=0,
        )
        with _in_front(child.pid):
            while not ended(child, _LOOK_SECONDS):
                if self._led.ending:
                    child.terminate()
        return child.returncode if child.returncode >= 0 else 128 - child.returncode

    @contextlib.contextmanager
    def _ctrl_c(self) -> Iterator[None]:
        """It answers the question; it does not end the session."""

        def take(_number: int, _frame: object) -> None:
            self._interrupted = True

        before = signal.signal(signal.SIGINT, take)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _in_front(group: int) -> Iterator[None]:
    """The terminal's keys, Ctrl-C among them, are for `group`, as a shell does it."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(0, group)
            os.killpg(group, signal.SIGCONT)  # it may have stopped for want of the terminal
        yield
    finally:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(0, os.getpgrp())
        signal.signal(signal.SIGTTOU, before)


def _set_modes() -> None:
    """Lines with an echo; nothing but Ctrl-C sends a signal."""
    modes = termios.tcgetattr(0)
    modes[0] |= termios.ICRNL
    modes[1] |= termios.OPOST | termios.ONLCR
    modes[3] |= termios.ICANON | termios.ECHO | termios.ISIG
    modes[6][termios.VSUSP] = modes[6][termios.VQUIT] = b"\0"
    termios.tcsetattr(0, termios.TCSADRAIN, modes)


def _folded(text: str) -> str:
    """In lines that fit the terminal, broken between words."""
    columns = os.get_terminal_size(1).columns
    return textwrap.fill(text, max(columns, 40))


def _new_page() -> None:
    """What stands on the screen goes up, out of sight, and can be read there."""
    rows = os.get_terminal_size(1).lines
    _write(f"\x1b[{rows};1H" + "\n" * rows + "\x1b[H\x1b[J")


def _write(text: str) -> None:
    data = text.encode("utf-8")
    while data:
        data = data[os.write(1, data) :]
