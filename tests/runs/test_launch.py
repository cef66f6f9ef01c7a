"""A command whose output cannot be kept does not run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.runs.launchers.launcher import RunCommand
from harness.runs.launchers.local import LocalLauncher, Pump


class Started(subprocess.Popen):
    all: list["Started"] = []  # noqa: RUF012

    def __init__(self, *words: object, **more: object) -> None:
        super().__init__(*words, **more)
        self.all.append(self)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Started]:
    Started.all = []
    monkeypatch.setattr(subprocess, "Popen", Started)
    return Started.all


def launch(folder: Path) -> None:
    command = RunCommand(
        argv=[sys.executable, "-c", "import time; print('on', flush=True); time.sleep(60)"],
        cwd=folder,
        environment={"PATH": os.environ["PATH"]},
        stdout=folder / "stdout.log",
        stderr=folder / "stderr.log",
        append=True,
    )
    LocalLauncher().submit(command)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_link_in_the_place_of_its_log_stops_it_before_it_starts(
    tmp_path: Path, started: list[Started]
) -> None:
    (tmp_path / "stderr.log").symlink_to(tmp_path / "elsewhere")
    before = descriptors()
    with pytest.raises(OSError, match="symbolic links"):
        launch(tmp_path)
    assert started == []
    assert descriptors() == before


def test_without_a_thread_for_its_output_it_is_ended(
    tmp_path: Path, started: list[Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(pump: Pump, stream: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Pump, "start", start)
    before = descriptors()
    with pytest.raises(OSError, match="can't start new thread"):
        launch(tmp_path)
    assert [process.poll() for process in started] == [-9]
    assert descriptors() == before
