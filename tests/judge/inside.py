"""`harness claude` with a stand-in for the CLI: a shell that runs a script inside the sandbox."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.domain.statuses import SandboxKind
from harness.sandbox.select import available
from tests.cli.journey import Answer, Journey
from tests.screen import Screen

SANDBOXES = ("bwrap", "landlock")


def require_sandbox(name: str) -> None:
    """Skip the test where this machine does not have it."""
    if reason := available()[SandboxKind(name)]:
        pytest.skip(f"{name}: {reason}")


@dataclass(frozen=True)
class Inside:
    """A project, and `claude` on its person's PATH: bash, but for the settings that it is given."""

    journey: Journey
    sandbox: str

    def __post_init__(self) -> None:
        require_sandbox(self.sandbox)

    @property
    def programs(self) -> Path:
        return self.journey.home / "programs"

    def environment(self, **extra: str) -> dict[str, str]:
        self.programs.mkdir(exist_ok=True)
        stand_in = self.programs / "claude"
        if not stand_in.is_file():
            stand_in.write_text('#!/bin/bash\nshift 2\nexec /bin/bash "$@"\n')
            stand_in.chmod(0o755)
        path = f"{self.programs}:/usr/local/bin:/usr/bin:/bin"
        return {**self.journey.environment(), "PATH": path, **extra}

    @property
    def bare(self) -> list[str]:
        """As a person types it, without an argument for the CLI."""
        return [sys.executable, "-P", "-I", "-m", "harness", "claude", "--sandbox", self.sandbox]

    def words(self, script: str) -> list[str]:
        return [*self.bare, "--", "-c", script]

    def on_screen(self, script: str, *more: str) -> Screen:
        """On a person's terminal; `more` options go to the CLI."""
        return Screen([*self.words(script), *more], self.environment(), self.journey.root)

    def run(self, script: str, timeout: float = 120.0, **extra: str) -> Answer:
        done = subprocess.run(
            self.words(script),
            cwd=self.journey.root,
            env=self.environment(**extra),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def start(self, script: str, **extra: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.words(script),
            cwd=self.journey.root,
            env=self.environment(**extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def left_over(home: Path) -> list[str]:
    """Command lines of living processes whose environment names this home."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            environment = (process / "environ").read_bytes()
            words = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(home) in environment and words:
            found.append(words.replace(b"\0", b" ").decode("utf-8", "replace"))
    return found
