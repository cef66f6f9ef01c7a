"""What judges runs in an environment of its own: nothing that lies in the project, in the folder
that a command stands in, or on PYTHONPATH is imported by it."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.artifacts.locate import Layout
from harness.cli.clean_start import bending, cleaned
from harness.domain.commands import for_helpers, for_supervisors, passed_on
from harness.domain.statuses import SandboxKind
from harness.driver import supervisors
from harness.files import private_folder
from harness.process import harness_command, judge_environment
from harness.runs.environment import child_environment
from harness.settings import create_config, load_settings
from tests.cli.journey import Journey, make_project
from tests.terminal import run_in_terminal

PLANTED = ("json", "sitecustomize", "usercustomize", "click", "numpy")
NOTES = "import sys\nopen({mark!r}, 'a').write(' '.join(sys.orig_argv) + '\\n')\n"
PATCHES_THE_SCORER = """
import importlib.abc, importlib.util, sys

class Patch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "harness.evaluation.scoring":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            import dataclasses
            run(module)
            true = module.score
            module.score = lambda *a, **k: dataclasses.replace(true(*a, **k), value=0.999)

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Patch())
"""
HARNESS = Path(sys.executable).with_name("harness")


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    made = make_project(tmp_path / "project", tmp_path / "home")
    for words in (("init",), ("plan", "approve"), ("experiment", "new", "--hypothesis", "blobs")):
        assert made.harness(*words).exit_code == 0
    return made


def plant(folder: Path, mark: Path) -> Path:
    """Modules that note who imported them."""
    folder.mkdir(exist_ok=True)
    for name in PLANTED:
        (folder / f"{name}.py").write_text(NOTES.format(mark=str(mark)), "utf-8")
    return folder


def typed(journey: Journey, *words: str, cwd: Path | None = None, **extra: str) -> str:
    """stdout of the installed command, as a person's shell starts it."""
    done = run_in_terminal(
        [HARNESS, *words], cwd=cwd or journey.root, env=journey.environment(**extra)
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def test_what_lies_in_the_project_and_in_the_folder_is_imported_by_nothing_of_ours(
    journey: Journey, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    plant(journey.root / "sub", mark)
    plant(journey.root, mark)
    (journey.root / "numpy.py").unlink()  # training imports it from its own folder, as it may
    for cwd in (journey.root, journey.root / "sub"):
        typed(journey, "status", cwd=cwd)
        done = subprocess.run(
            [sys.executable, "-m", "harness", "status"],
            cwd=cwd,
            env=journey.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert not mark.exists()


def test_self_starts_are_isolated(journey: Journey) -> None:
    assert harness_command("watch") == [sys.executable, "-P", "-I", "-m", "harness", "watch"]
    inherited = {
        "PATH": "/home/me/bin:/usr/bin",
        "LD_LIBRARY_PATH": "/opt/cuda",
        "LD_PRELOAD": "/tmp/x.so",
        "PYTHONPATH": "/tmp",
        "PYTHONHOME": "/tmp",
        "ANTHROPIC_API_KEY": "a key",
        "HOME": "/home/me",
        "LC_ALL": "C.UTF-8",
        "OMP_NUM_THREADS": "2",
    }
    ours = judge_environment(inherited)
    assert ours.pop("PATH").startswith("/usr/local/bin:/usr/bin:/bin")
    assert ours == {
        "HOME": "/home/me",
        "LC_ALL": "C.UTF-8",
        "OMP_NUM_THREADS": "2",
        "HARNESS_COMMAND_PATH": "/home/me/bin:/usr/bin",
        "HARNESS_COMMAND_LD_LIBRARY_PATH": "/opt/cuda",
    }
    # What trains finds its programs and libraries where the caller has them, also two starts later.
    again = judge_environment(judge_environment(inherited))
    assert passed_on(again) == {
        "PATH": "/home/me/bin:/usr/bin",
        "LD_LIBRARY_PATH": "/opt/cuda",
        "LC_ALL": "C.UTF-8",
        "OMP_NUM_THREADS": "2",
    }


def test_what_opens_the_ledgers_server_reaches_supervisors_and_no_training(tmp_path: Path) -> None:
    access = {"PGPASSWORD": "hush", "PGSSLROOTCERT": "/ca.pem", "PGUSER": "trainers"}
    inherited = {**access, "PATH": "/usr/bin", "PGOPTIONS": "-c search_path=x", "PGHOST": "h"}
    supervisor = for_supervisors(inherited)
    assert {name: value for name, value in supervisor.items() if name[:2] == "PG"} == access
    assert for_supervisors(supervisor) == supervisor
    assert access.items() <= cleaned(inherited).items()
    inner = [
        passed_on(supervisor),
        for_helpers(supervisor),
        judge_environment(supervisor),
        child_environment(supervisor, tmp_path, {}),
    ]
    assert not [name for variables in inner for name in variables if name.startswith("PG")]


def test_the_loops_supervisor_gets_what_opens_the_ledgers_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, str]] = []

    def noted(*_: object, environment: dict[str, str], **__: object) -> None:
        given.append(environment)

    monkeypatch.setattr(supervisors, "start", noted)
    monkeypatch.setenv("PGPASSWORD", "hush")
    monkeypatch.setenv("PGHOST", "elsewhere")
    root = tmp_path / "project"
    create_config(root, name="p", token="0")
    settings = load_settings(root, {"XDG_STATE_HOME": str(tmp_path / "state")})
    private_folder(settings.state)
    ledger = SimpleNamespace(require_session=lambda: None)
    project: Any = SimpleNamespace(layout=Layout(settings), settings=settings, ledger=ledger)
    supervisors.Supervisor.start(project, "exp-0001", None, sandbox=SandboxKind.NONE, session=None)
    (environment,) = given
    assert environment["PGPASSWORD"] == "hush"
    assert "PGHOST" not in environment


def test_a_score_is_the_true_one_whatever_pythonpath_patches(
    journey: Journey, tmp_path: Path
) -> None:
    lib = tmp_path / "lib"
    lib.mkdir()
    (lib / "sitecustomize.py").write_text(PATCHES_THE_SCORER, "utf-8")
    assert "completed" in typed(journey, "train", "exp-0001", PYTHONPATH=str(lib))
    # The patch is real: without the clean start it decides.
    forged = run_in_terminal(
        [
            sys.executable,
            "-c",
            "import sys; from harness.cli.main import main; main(sys.argv[1:])",
            *("evaluate", "exp-0001", "--json"),
        ],
        cwd=journey.root,
        env=journey.environment(PYTHONPATH=str(lib)),
    )
    assert json.loads(forged.stdout)["evaluations"][0]["value"] == 0.999


def test_evaluate_and_gate_start_clean_below_such_variables(
    journey: Journey, tmp_path: Path
) -> None:
    lib = tmp_path / "lib"
    lib.mkdir()
    (lib / "sitecustomize.py").write_text(PATCHES_THE_SCORER, "utf-8")
    bent = {"PYTHONPATH": str(lib), "LD_LIBRARY_PATH": str(lib), "PYTHONHASHSEED": "1"}
    typed(journey, "train", "exp-0001", **bent)
    evaluated = json.loads(typed(journey, "evaluate", "exp-0001", "--json", **bent))
    assert 0.5 < evaluated["score"] < 0.999
    assert all(row["value"] < 0.999 for row in evaluated["evaluations"])
    judged = json.loads(typed(journey, "gate", "check", "exp-0001", "--json", **bent))
    assert evaluated["score"] in judged["score"].values()


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux")
def test_a_pane_of_tmux_imports_nothing_from_the_project(journey: Journey, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    plant(journey.root, mark)
    server = f"harness-{os.getpid()}"
    tmux = ["tmux", "-L", server, "-f", "/dev/null"]
    environment = journey.environment(TERM="xterm", PYTHONPATH=str(journey.root))
    quiet = {"env": environment, "cwd": journey.root, "check": True, "capture_output": True}
    try:
        split = f"env -u PYTHONPATH {HARNESS} watch --split; sleep 60"
        subprocess.run([*tmux, "new-session", "-d", "-x", "200", "-y", "50", split], **quiet)
        deadline = time.monotonic() + 60
        while True:
            panes = subprocess.run(
                [*tmux, "list-panes", "-a", "-F", "#{pane_start_command}|#{pane_pid}"], **quiet
            ).stdout.decode()
            shown = subprocess.run(
                [*tmux, "capture-pane", "-p", "-t", ":.1"], **{**quiet, "check": False}
            )
            if b"first run" in shown.stdout:
                break
            assert time.monotonic() < deadline, panes + shown.stdout.decode()
            time.sleep(0.1)
        assert "-P -I -m harness watch" in panes
    finally:
        subprocess.run([*tmux, "kill-server"], env=environment, check=False)
    assert not mark.exists()


def test_a_clean_start_keeps_what_people_need_and_nothing_that_bends() -> None:
    person = {
        "PATH": "/home/me/bin:/usr/bin",
        "HOME": "/home/me",
        "TERM": "xterm",
        "TMUX": "/tmp/x,1,0",
        "LC_TIME": "C",
        "XDG_STATE_HOME": "/s",
        "CLAUDE_CONFIG_DIR": "/c",
        "CLAUDECODE": "1",
        "ANTHROPIC_API_KEY": "k",
        "HARNESS_SANDBOX": "x",
        "CUDA_VISIBLE_DEVICES": "0",
    }
    bent = {
        "PYTHONPATH": "/a",
        "PYTHONHOME": "/b",
        "LD_PRELOAD": "/c.so",
        "LD_AUDIT": "/d.so",
        "LD_LIBRARY_PATH": "/e",
    }
    assert bending({**person, **bent}, isolated=False) == sorted(bent)
    assert bending({**person, **bent}, isolated=True) == [
        "LD_AUDIT",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
    ]
    assert bending({**person, "PYTHONUNBUFFERED": "1", "PYTHONPATH": ""}, isolated=False) == []
    left = cleaned({**person, **bent, "OTHER": "1"})
    assert bending(left, isolated=True) == []
    assert left == {
        **person,
        "HARNESS_COMMAND_PATH": "/home/me/bin:/usr/bin",
        "HARNESS_COMMAND_LD_LIBRARY_PATH": "/e",
    }
