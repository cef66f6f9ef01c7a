"""The interactive CLI in a terminal, as a person sees it: keys are typed, the screen is read."""

import json
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

    def say(self, text: str, *, until: str, gone: str = "", patience: float = PATIENCE_S) -> str:
        """Type `text`, send it, and wait for words that were not on the screen before; returns the
        screen."""
        self.write(text)
        self.keys("Enter")
        return self.wait_for(until, gone=gone, patience=patience)

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
    """`claude` in `project`, or another `program` that starts it, as for a person who has answered
    the first-run screens and trusts the folder. `size`: columns and lines."""
    sockets = tempfile.mkdtemp(
        prefix="hx-", dir="/tmp"
    )  # a socket's path has a hundred characters at most
    environment = {
        **clean_environment(home, gateway),
        "TERM": "xterm-256color",
        "TMUX_TMPDIR": sockets,
    }
    (home / "config" / ".claude.json").write_text(
        json.dumps(answered(project, gateway.key)), "utf-8"
    )
    terminal = Terminal(f"harness-{uuid.uuid4().hex[:12]}", environment)
    columns, lines = map(str, size)
    start = ("new-session", "-d", "-s", "main", "-x", columns, "-y", lines, "-c", str(project))
    try:
        started = terminal._tmux(*start, *(program or (str(cli()),)), *words)
        assert started.returncode == 0, started.stderr
        terminal.wait_for("Claude Code v", f"\n{PROMPT}")
        yield terminal
    finally:
        terminal._tmux("kill-server")
        shutil.rmtree(sockets, ignore_errors=True)


def answered(project: Path, key: str) -> dict[str, object]:
    """The CLI's own file after its first-run questions."""
    trusted = {
        "hasTrustDialogAccepted": True,
        "hasCompletedProjectOnboarding": True,
        "enabledMcpjsonServers": ["harness"],
    }
    return {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "projects": {str(project): trusted},
        "customApiKeyResponses": {"approved": [key[-20:]], "rejected": []},
    }
