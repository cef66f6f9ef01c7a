"""The environment and the launcher of an agent's CLI: made from nothing, whatever ours holds."""

import os
import subprocess
from pathlib import Path

import pytest

from harness.domain.sandbox import Confinement
from harness.domain.statuses import ExperimentStatus
from harness.driver.environment import (
    FROM_THE_SDK,
    SESSION,
    SessionFolders,
    bundled_cli,
    child_environment,
    confinement,
    link_login,
    write_launcher,
)
from harness.judge.confinement import MOST_CLOSED
from harness.ledger.project import Project
from harness.model_gateway.service import Service
from harness.sandbox.none import NoSandbox

ENV = Path("/usr/bin/env")


@pytest.fixture
def folders(tmp_path: Path) -> SessionFolders:
    made = SessionFolders(outside=tmp_path / "state" / "s 1")
    made.create()
    return made


def environment_of(folders: SessionFolders) -> dict[str, str]:
    return child_environment(
        folders,
        session="s 1",
        gateway_url="http://127.0.0.1:9",
        gateway_key="key-of-the-session",
        interpreter=None,
        retries=1,
        service=Service(),
    )


def test_it_holds_the_key_of_its_session_and_folders_of_its_own_only(
    folders: SessionFolders,
) -> None:
    environment = environment_of(folders)
    assert environment["ANTHROPIC_API_KEY"] == "key-of-the-session"
    assert environment["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9"
    for name in ("HOME", "TMPDIR", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_TMPDIR"):
        assert Path(environment[name]).is_relative_to(folders.inside)
    assert "ANTHROPIC_CUSTOM_HEADERS" not in environment


def test_a_login_is_a_link_that_is_gone_with_the_session(
    folders: SessionFolders, tmp_path: Path
) -> None:
    login = tmp_path / ".credentials.json"
    login.write_text("of a test")
    place = folders.config / ".credentials.json"
    link_login(folders, login)
    assert (place.is_symlink(), place.resolve()) == (True, login)
    link_login(folders, None)
    assert not place.is_symlink()
    assert login.read_text() == "of a test"


def test_the_launcher_passes_on_nothing_but_what_the_sdk_sets(folders: SessionFolders) -> None:
    expected = environment_of(folders)
    launcher = write_launcher(NoSandbox(), Confinement(), folders, expected, ENV)
    ours = {
        **os.environ,
        "A_SECRET_OF_OURS": "swordfish",
        "ANTHROPIC_API_KEY": "real",
        "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    }
    done = subprocess.run([launcher, "-0"], env=ours, capture_output=True, text=True, check=True)
    seen = dict(item.split("=", 1) for item in done.stdout.split("\0") if item)
    assert {name: seen[name] for name in expected} == expected
    of_a_shell = {"PWD", "OLDPWD", "SHLVL", "_"}
    assert set(seen) - set(expected) <= {*FROM_THE_SDK, *of_a_shell, "LC_CTYPE"}
    assert seen["CLAUDE_CODE_ENTRYPOINT"] == "sdk-py"
    assert seen[SESSION] == "s 1"


def test_no_command_line_holds_the_key(folders: SessionFolders) -> None:
    """Everybody on the machine may read /proc/PID/cmdline."""
    environment = {**environment_of(folders), "ODD": "a 'quoted'\n$(line) `of` \\ two"}
    launcher = write_launcher(NoSandbox(), Confinement(), folders, environment, ENV)
    assert (folders.variables.stat().st_mode & 0o777, launcher.stat().st_mode & 0o777) == (
        0o600,
        0o700,
    )
    starts = [
        line
        for path in (launcher, folders.variables)
        for line in path.read_text("utf-8").splitlines()
        if line.startswith("exec ")
    ]
    assert len(starts) == 2
    assert "key-of-the-session" not in "".join(starts)
    assert "key-of-the-session" not in launcher.read_text("utf-8")
    done = subprocess.run([launcher, "-0"], env={}, capture_output=True, text=True, check=True)
    seen = dict(item.split("=", 1) for item in done.stdout.split("\0") if item)
    assert seen["ODD"] == environment["ODD"]
    assert seen["ANTHROPIC_API_KEY"] == "key-of-the-session"


def test_the_launcher_lies_outside_the_sandbox_and_leaves_its_process_id(
    folders: SessionFolders,
) -> None:
    launcher = write_launcher(
        NoSandbox(), Confinement(), folders, environment_of(folders), Path("/bin/true")
    )
    process = subprocess.Popen([launcher])
    process.wait()
    assert int(folders.pid.read_text("ascii")) == process.pid
    for path in (launcher, folders.pid, folders.stderr):
        assert not path.is_relative_to(folders.inside)


def test_the_cli_that_comes_with_the_sdk_is_used() -> None:
    assert os.access(bundled_cli(), os.X_OK)


def test_the_sandbox_of_a_session_stays_small_after_many_experiments(
    project: Project, tmp_path: Path
) -> None:
    """Each closed folder is a mount and some words of a command line, whose length the kernel
    bounds."""
    ledger = project.ledger
    for number in range(MOST_CLOSED + 5):
        opened = ledger.open_experiment(
            hypothesis=f"Idea {number}", parent=None, by="model-builder"
        )
        project.layout.experiment(opened.id).mkdir(parents=True)
        ledger.move_experiment(opened.id, ExperimentStatus.DISCARDED, "a test")
    folders = SessionFolders(outside=tmp_path / "session")
    folders.create()
    confined = confinement(project, project.plan(), folders, gateway_port=1)
    kept = [path.name for path in confined.read_only if path.parent == project.layout.experiments]
    assert sorted(kept) == [f"exp-{number:04d}" for number in range(6, MOST_CLOSED + 6)]
