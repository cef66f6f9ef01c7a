"""The supervisor reaches a run's command through the protocol of launchers alone."""

import json
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import psutil
import pytest
from runs_support import Trainer

from harness.domain import variables
from harness.domain.statuses import RunStatus
from harness.errors import ConfigError, RunError
from harness.ledger.project import Project
from harness.runs.launchers import launcher, ray_cluster
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


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("", "Ray did not start a cluster here: the node timed out"),
        ("10.0.0.7:6379", "Ray cannot be reached at 10.0.0.7:6379: the node timed out"),
    ],
)
def test_a_ray_that_does_not_start_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, said: str
) -> None:
    """Ray raises a plain Exception then."""

    def init(**_words: object) -> None:
        raise Exception("the node timed out")

    monkeypatch.setattr(ray_cluster, "_ray", lambda: SimpleNamespace(init=init))
    monkeypatch.setattr(ray_cluster, "_require_listener", lambda _address: None)
    options = {"address": address} if address else {}
    engine = ray_cluster.RayEngine(options, inherited={}, state=tmp_path)
    with pytest.raises(RunError, match=said) as caught:
        engine.start({"HOME": str(tmp_path)})
    assert caught.value.code == "ray_refused"


def test_an_address_of_ray_where_nobody_listens_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray asked for minutes, and ended the command by a signal without a word of ours."""
    monkeypatch.setattr(ray_cluster, "_ray", SimpleNamespace)
    engine = ray_cluster.RayEngine({"address": "127.0.0.1:1"}, inherited={}, state=tmp_path)
    with pytest.raises(RunError, match=r"Ray cannot be reached at 127\.0\.0\.1:1: ") as caught:
        engine.start({"HOME": str(tmp_path)})
    assert caught.value.code == "ray_refused"
