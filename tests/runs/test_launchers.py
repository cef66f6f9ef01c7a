"""The supervisor reaches a run's command through the protocol of launchers alone."""

import json
import signal
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest
from runs_support import Trainer

from harness.domain import variables
from harness.domain.statuses import RunStatus
from harness.errors import ConfigError
from harness.ledger.project import Project
from harness.runs.launchers import launcher
from harness.runs.launchers.launcher import Handle, KilledProcesses, RunCommand
from harness.settings import CONFIG

NAME = "memory"


class MemoryLauncher:
    """A Launcher without a process: each poll is one step of a script that writes rows."""

    steps: ClassVar[list[dict[str, Any] | int]] = []
    calls: ClassVar[list[str]] = []
    forgets: ClassVar[bool] = False

    def submit(self, command: RunCommand) -> dict[str, Any]:
        self.calls.append("submit")
        self.environment = command.environment
        for path in (command.stdout, command.stderr):
            path.write_text("")
        self.metrics = command.stdout.with_name("metrics.jsonl")
        self.left = list(self.steps)
        self.code: int | None = None
        return {"line": 7}

    def poll(self, handle: Handle, *, seconds: float) -> int | None:
        assert handle == {"line": 7}
        if self.code is None and self.left and seconds:
            step = self.left.pop(0)
            if isinstance(step, int):
                self.code = step
            else:
                self._log(step)
        return self.code

    def signal(self, handle: Handle, number: int) -> None:
        self.calls.append(signal.Signals(number).name)
        self.code = -number

    def kill(self, handle: Handle, token_sha256: str) -> KilledProcesses:
        self.calls.append("kill")
        return KilledProcesses(count=0, left=0)

    def output(self, handle: Handle, *, seconds: float) -> None:
        self.calls.append("output")

    def processes(self, handle: Handle) -> list[psutil.Process]:
        return []

    def lost(self, handle: Handle) -> bool:
        return self.forgets

    def _log(self, row: dict[str, Any]) -> None:
        name = f"{self.environment[variables.EXPERIMENT]}/{self.environment[variables.RUN]}"
        whole = {"run": name, "token": self.environment[variables.TOKEN], **row}
        with self.metrics.open("a") as stream:
            stream.write(json.dumps(whole) + "\n")


@pytest.fixture
def root(root: Path) -> Path:
    """The project's config.toml names the launcher, as a user would."""
    with (root / CONFIG).open("a") as stream:
        stream.write(f'launcher = "{NAME}"\n')
    return root


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> type[MemoryLauncher]:
    monkeypatch.setitem(launcher.LAUNCHERS, NAME, f"{__name__}:MemoryLauncher")
    monkeypatch.setattr(MemoryLauncher, "calls", [])
    return MemoryLauncher


START = {"event": "start"}
END = {"event": "end", "status": "completed"}


def test_a_second_launcher_is_one_class_and_one_row(
    project: Project,
    run_training: Trainer,
    memory: type[MemoryLauncher],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "steps", [START, {"event": "epoch", "epoch": 0}, END, 0])
    run = run_training(seeds=[1]).runs[0]
    assert (run.status, run.rows, run.exit_code) == (RunStatus.COMPLETED, 3, 0)
    assert run.job == {"launcher": NAME, "handle": {"line": 7}}
    assert memory.calls == ["submit", "kill", "output"]


def test_a_limit_goes_through_the_launcher(
    project: Project,
    run_training: Trainer,
    memory: type[MemoryLauncher],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "steps", [])
    run = run_training(seeds=[1], silent_s=0.0).runs[0]
    assert (run.status, run.exit_code) == (RunStatus.KILLED, -signal.SIGTERM)
    assert memory.calls == ["submit", "SIGTERM", "kill", "output"]


def test_a_command_that_its_launcher_forgot_is_lost(
    project: Project,
    run_training: Trainer,
    memory: type[MemoryLauncher],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "steps", [START])
    monkeypatch.setattr(memory, "forgets", True)
    run = run_training(seeds=[1]).runs[0]
    assert run.status is RunStatus.LOST


def test_a_launcher_that_is_not_there_is_refused_before_a_run_is_registered(
    project: Project, run_training: Trainer
) -> None:
    with pytest.raises(ConfigError, match=r"no launcher 'memory'; there is local, ray, slurm\."):
        run_training(seeds=[1])
    assert project.ledger.runs("exp-0001") == []
