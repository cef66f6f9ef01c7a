"""The interactive CLI in a terminal, as a person sees it: keys are typed, the screen is read."""

import json
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
KEY_S = 3.0
"""How long a key may take to be seen."""
PROMPT = "❯"
ASKED = re.compile(r"To run it, type (\d{4}) and press")
QUESTION = "asks you to run"
"""Of `harness claude`, where the session runs a verb that is a person's."""


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

    def fill(self, text: str, *, until: str) -> str:
        """Type `text` into a dialog's field, send it, and wait for words."""
        self._tmux("send-keys", "-t", "main", "-l", text)
        self.wait_for(text)
        self.keys("Enter")
        return self.wait_for(until)

    def say(self, text: str, *, until: str, gone: str = "", patience: float = PATIENCE_S) -> str:
        """Type `text`, send it, and wait for words that were not on the screen before; returns the
        screen."""
        self.write(text)
        self.keys("Enter")
        return self.wait_for(until, gone=gone, patience=patience)

    def choose(self, answer: str, *, gone: str) -> None:
        """Move to the option that begins with `answer` and take it; wait until the words `gone` of
        its dialog are not on the screen."""
        chosen = re.compile(rf"{PROMPT}\s*(?:\d+\.\s*)?(?:✔\s*)?{re.escape(answer)}")
        key = "Down"
        for _ in range(24):
            before = self._settled()
            if gone not in self.screen():
                return
            if any(chosen.search(line) for line in before):
                self.keys("Enter")  # one that comes with the dialog itself is not taken
            else:
                self.keys(key)
            end = time.monotonic() + KEY_S
            while self._marked() == before and time.monotonic() < end:
                time.sleep(LOOK_S)
            if self._marked() == before:  # the last option: the other way round
                key = "Up" if key == "Down" else "Down"
        raise AssertionError(f"no option {answer!r}; the screen:\n{self.screen()}")

    def _settled(self) -> list[str]:
        """The marked lines once they stay where they are."""
        before, now = [""], self._marked()
        while now != before:
            time.sleep(6 * LOOK_S)
            before, now = now, self._marked()
        return now

    def _marked(self) -> list[str]:
        """The lines where the mark of the chosen option stands."""
        return [line for line in self.screen().splitlines() if PROMPT in line]

    def wait_for(self, *words: str, gone: str = "", patience: float = PATIENCE_S) -> str:
        """The screen once all `words` stand on it and `gone` does not. Raises AssertionError with
        the screen else, after `patience` seconds."""
        end = time.monotonic() + patience
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
    size: tuple[int, int] = (110, 60),
) -> Iterator[Terminal]:
    """`claude` in `project`, or another `program` that starts it, at its input line. Each dialog on
    the way is answered by keys, as by a person who starts it here for the first time. `size`:
    columns and lines."""
    sockets = tempfile.mkdtemp(
        prefix="hx-", dir="/tmp"
    )  # a socket's path has a hundred characters at most
    environment = {
        **clean_environment(home, gateway),
        "TERM": "xterm-256color",
        "TMUX_TMPDIR": sockets,
    }
    own = home / "config" / ".claude.json"
    if not own.exists():
        own.write_text(json.dumps(SET_UP), "utf-8")
    terminal = Terminal(f"harness-{uuid.uuid4().hex[:12]}", environment)
    columns, lines = map(str, size)
    start = ("new-session", "-d", "-s", "main", "-x", columns, "-y", lines, "-c", str(project))
    try:
        started = terminal._tmux(*start, *(program or (str(cli()),)), *words)
        assert started.returncode == 0, started.stderr
        answer_dialogs(terminal)
        yield terminal
    finally:
        terminal._tmux("kill-server")
        shutil.rmtree(sockets, ignore_errors=True)


SET_UP = {"hasCompletedOnboarding": True}
"""The CLI's own file after it was set up on this machine, which takes a call to its makers. No
dialog is answered by it."""
START_DIALOGS = (
    ("Do you want to use this API key?", "Yes"),
    ("Yes, I trust this folder", "Yes, I trust this folder"),
    ("New MCP server found in this project", "Use this MCP server"),
)
"""(words that only this dialog shows, the answer)."""


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


def code_on(terminal: Terminal) -> str:
    """The code that the person types to run what the session asked for; waits for the question."""
    screen = terminal.wait_for(QUESTION, "To run it, type")
    found = ASKED.search(screen)
    assert found, screen
    return found[1]
