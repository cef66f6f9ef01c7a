"""A command of the lab runs in a process of its own, with an environment, folder and streams of its
own, though it loads nothing anew."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cheats import forked

pytestmark = pytest.mark.skipif(not forked.AVAILABLE, reason="no process is copied here")


def ran(monkeypatch: pytest.MonkeyPatch, folder: Path, does: Callable[[], int], **more: float):
    monkeypatch.setattr(forked, "_called", does)
    environment = {"HOME": str(folder), "TMPDIR": str(folder)}
    given = {"timeout_s": 30.0, **more}
    return forked.run(("status", "--json"), cwd=folder, environment=environment, **given)


def test_it_answers_as_the_command_does(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    ended = forked.run(("status", "--json"), cwd=tmp_path, environment=environment, timeout_s=30)
    assert ended.returncode == 2
    error = json.loads(ended.stdout)["error"]
    assert error["code"] == "no_project"
    assert str(tmp_path) in error["message"]
    assert "Traceback" not in ended.stderr


def test_nothing_of_this_process_is_seen_but_what_it_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_LAB", "1")
    before = os.getcwd(), dict(os.environ), list(sys.argv)

    def look() -> int:
        files = [name for name in os.listdir("/proc/self/fd") if int(name) > 3]  # 3 lists them
        told = {
            "cwd": os.getcwd(),
            "environment": dict(os.environ),
            "argv": sys.argv,
            "files": files,
            "own": os.getpid() == os.getsid(0) != os.getppid(),
        }
        print(json.dumps(told))
        print("said", file=sys.stderr)
        return 3

    ended = ran(monkeypatch, tmp_path, look)
    assert (ended.returncode, ended.stderr) == (3, "said\n")
    assert json.loads(ended.stdout) == {
        "cwd": str(tmp_path),
        "environment": {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        "argv": ["harness", "status", "--json"],
        "files": [],
        "own": True,
    }
    assert (os.getcwd(), dict(os.environ), sys.argv) == before


def test_it_ends_at_its_limit_and_what_it_raises_goes_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    ended = ran(monkeypatch, tmp_path, lambda: time.sleep(60) or 0, timeout_s=0.2)
    assert ended.returncode == -9
    assert time.monotonic() - began < 30

    def broken() -> int:
        raise RuntimeError("of the child")

    gone = ran(monkeypatch, tmp_path / "gone", broken)
    assert (gone.returncode, "FileNotFoundError" in gone.stderr) == (1, True)
    ended = ran(monkeypatch, tmp_path, broken)
    assert ended.returncode == 1
    assert "RuntimeError: of the child" in ended.stderr
