"""The interactive CLI in a terminal, as a person sees it: keys are typed, the screen is read."""

import re
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.interactive.gateway import OpenGateway
from tests.interactive.place import clean_environment, cli

LOOK_S = 0.05
PATIENCE_S = 45.0
PROMPT = "❯"


@dataclass(frozen=True)
class Terminal:
    """One CLI on a terminal of its own; `server` is the socket of a tmux that serves nothing
    else."""

    server: str
    environment: dict[str, str]

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p", "-t", "main").stdout.replace("\xa0", " ")

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names, e.g. Enter, Escape."""
        self._tmux("send-keys", "-t", "main", *names)

    def write(self, text: str, *, sees: str = "") -> str:
        """Type `text` and wait until it stands in the input line, and `sees` on the screen, which
        is returned."""
        self._tmux("send-keys", "-t", "main", "-l", text)
        return self.wait_for(f"{PROMPT} {text}", sees)

    def say(self, text: str, *, until: str, gone: str = "") -> str:
        """Type `text`, send it, and wait for words that were not on the screen before; returns the
        screen."""
        self.write(text)
        self.keys("Enter")
        return self.wait_for(until, gone=gone)

    def choose(self, answer: str, *, gone: str) -> None:
        """Move down to the option that begins with `answer` and take it; wait until the words
        `gone` of its dialog are not on the screen."""
        chosen = re.compile(rf"{PROMPT}\s*(?:\d+\.\s*)?{re.escape(answer)}")
        for _ in range(12):
            if chosen.search(self.screen()):
                break
            self.keys("Down")
            time.sleep(4 * LOOK_S)
        else:
            raise AssertionError(f"no option {answer!r}; the screen:\n{self.screen()}")
        self.keys("Enter")
        self.wait_for(gone=gone)

    def wait_for(self, *words: str, gone: str = "") -> str:
        """The screen once all `words` stand on it and `gone` does not. Raises AssertionError with
        the screen else."""
        end = time.monotonic() + PATIENCE_S
        while True:
            screen = self.screen()
            if all(item in screen for item in words) and not (gone and gone in screen):
                return screen
            if time.monotonic() > end:
                raise AssertionError(
                    f"{words!r} did not come, or {gone!r} did not go; the screen:\n{screen}"
                )
            time.sleep(LOOK_S)

    def _tmux(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["tmux", "-L", self.server, "-f", "/dev/null", *words]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=30
        )


@contextmanager
def interactive(
    project: Path,
    home: Path,
    gateway: OpenGateway,
    *words: str,
    program: Sequence[str] = (),
) -> Iterator[Terminal]:
    """`claude` in `project`, or another `program` that starts it. Every dialog of its start is
    answered by keys, as a person who trusts the folder and its tool server does; what was answered
    in an earlier session of this `home` is not asked again."""
    sockets = tempfile.mkdtemp(
        prefix="hx-", dir="/tmp"
    )  # a socket's path has a hundred characters at most
    environment = {
        **clean_environment(home, gateway),
        "TERM": "xterm-256color",
        "TMUX_TMPDIR": sockets,
    }
    terminal = Terminal(f"harness-{uuid.uuid4().hex[:12]}", environment)
    start = ("new-session", "-d", "-s", "main", "-x", "110", "-y", "60", "-c", str(project))
    try:
        started = terminal._tmux(*start, *(program or (str(cli()),)), *words)
        assert started.returncode == 0, started.stderr
        answer_dialogs(terminal)
        yield terminal
    finally:
        terminal._tmux("kill-server")
        shutil.rmtree(sockets, ignore_errors=True)


START_DIALOGS = (
    ("Choose the text style", ""),
    ("Do you want to use this API key?", "Yes"),
    ("Press Enter to continue", ""),
    ("Use Claude Code's terminal setup?", "No"),
    ("Yes, I trust this folder", "Yes, I trust this folder"),
    ("New MCP server found in this project", "Use this MCP server"),
)
"""(words that only this dialog shows, the answer; "": the one that stands there)."""


def answer_dialogs(terminal: Terminal) -> list[str]:
    """Answer what the CLI asks until its input line is there; returns what was asked."""
    asked: list[str] = []
    end = time.monotonic() + PATIENCE_S
    while True:
        screen = terminal.screen()
        there = next((item for item in START_DIALOGS if item[0] in screen), None)
        if there is not None:
            words, answer = there
            asked.append(words)
            terminal.choose(answer, gone=words)
        elif "Claude Code v" in screen and f"\n{PROMPT}" in screen:
            return asked
        assert time.monotonic() < end, f"no input line after {asked}; the screen:\n{screen}"
        time.sleep(LOOK_S)
