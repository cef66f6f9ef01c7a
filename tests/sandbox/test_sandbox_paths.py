"""Order of mounts, links, interpreters, wrappers and the choice of a sandbox."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.domain.sandbox import Confinement
from harness.domain.statuses import SandboxKind
from harness.errors import SandboxError
from harness.sandbox import select
from harness.sandbox.reach import Access, accelerators, grants


def test_deeper_paths_win(bwrap):
    harness = bwrap.project / ".harness"
    run = harness / "experiments" / "exp-0001" / "runs" / "run-01"
    run.mkdir(parents=True)
    secret = bwrap.project / "private"
    secret.mkdir()
    (secret / "note").write_text("hidden words")
    confinement = Confinement(
        writable=(run, bwrap.project), read_only=(harness,), hidden=(secret, bwrap.state)
    )
    script = (
        "echo a > top; echo b > .harness/policy.json; echo c > .harness/experiments/x; echo d >"
        f" '{run}/metrics'; mv .harness other; cat private/note; ls -A private; echo e >"
        " private/new"
    )
    completed = bwrap.sh(script, confinement=confinement)
    assert b"hidden words" not in completed.stdout + completed.stderr
    assert (bwrap.project / "top").read_text() == "a\n"
    assert (run / "metrics").read_text() == "d\n"
    assert sorted(os.listdir(harness)) == ["experiments"]
    assert sorted(os.listdir(harness / "experiments")) == ["exp-0001"]
    assert sorted(os.listdir(secret)) == ["note"]


def test_a_hidden_file_is_empty(bwrap):
    note = bwrap.project / "note"
    note.write_text("hidden words")
    completed = bwrap.sh(
        "cat note; echo x > note",
        confinement=Confinement(writable=(bwrap.project,), hidden=(note,)),
    )
    assert completed.stdout == b""
    assert note.read_text() == "hidden words"


def test_a_read_only_file_in_a_writable_project(bwrap):
    plan = bwrap.project / "plan.md"
    plan.write_text("frozen")
    confinement = bwrap.confinement(read_only=(plan,))
    completed = bwrap.sh(
        "cat plan.md; echo x > plan.md; rm -f plan.md; mv new plan.md", confinement=confinement
    )
    assert completed.stdout == b"frozen"
    assert plan.read_text() == "frozen"


def test_read_only_paths_outside_the_project_cannot_be_written(sandboxed, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "rows").write_text("1")
    completed = sandboxed.sh(
        f"cat {data}/rows; echo 2 > {data}/rows; echo 2 > {data}/new",
        confinement=sandboxed.confinement(read_only=(data,)),
    )
    assert completed.stdout == b"1"
    assert [(path.name, path.read_text()) for path in data.iterdir()] == [("rows", "1")]


def test_nothing_beside_the_writable_paths_can_be_written(sandboxed):
    completed = sandboxed.sh(
        "echo x > /etc/harness-test; echo x > /usr/harness-test; echo x > /harness-test; echo x >"
        " ../y"
    )
    assert completed.stderr.count(b"annot create") >= 3  # under bwrap, .. is in a /tmp of its own
    assert not any(
        Path(name).exists() for name in ("/etc/harness-test", "/usr/harness-test", "/harness-test")
    )
    assert not (sandboxed.project.parent / "y").exists()


def test_landlock_refuses_what_it_cannot_hide(landlock):
    secret = landlock.project / "private"
    secret.mkdir()
    with pytest.raises(SandboxError, match="cannot hide") as raised:
        landlock.sh(
            "true", confinement=Confinement(writable=(landlock.project,), hidden=(secret,))
        )
    assert raised.value.code == "sandbox_cannot_hide"


def test_what_must_be_hidden_must_exist(bwrap):
    with pytest.raises(SandboxError, match="does not exist yet"):
        bwrap.sh(
            "true",
            confinement=Confinement(writable=(bwrap.project,), hidden=(bwrap.project / "later",)),
        )


def test_paths_through_links_work_under_both_names(sandboxed, tmp_path):
    link = tmp_path / "link to project"
    link.symlink_to(sandboxed.project)
    confinement = Confinement(writable=(link,), hidden=(sandboxed.state,))
    completed = sandboxed.sh(
        f"echo a > '{link}/one' && echo b > '{sandboxed.project}/two'", confinement=confinement
    )
    assert completed.exit_code == 0, completed.stderr
    assert {path.name for path in sandboxed.project.iterdir()} >= {"one", "two"}


def test_another_interpreter_is_followed_through_its_links(sandboxed, tmp_path):
    home = tmp_path / "somewhere" / "pythons" / "3.x"
    (home / "bin").mkdir(parents=True)
    shutil.copy(Path(sys.executable).resolve(), home / "bin" / "python3")
    (home / "lib").symlink_to(Path(sys.base_prefix) / "lib")
    venv = tmp_path / "other venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(home / "bin" / "python3")
    (venv / "pyvenv.cfg").write_text(f"home = {home / 'bin'}\n")
    (venv / "lib").mkdir()
    completed = sandboxed.run(str(venv / "bin" / "python"), "-c", "import sys; print(sys.prefix)")
    assert completed.stdout.decode().strip() == str(venv), completed.stderr


def test_a_home_is_never_granted_for_a_program_in_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    tool = tmp_path / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    (tmp_path / "lib" / "python3.11").mkdir(parents=True)
    (tmp_path / "lib" / "python3.11" / "os.py").touch()
    paths = {grant.path for grant in grants([str(tool)], Confinement())}
    assert tmp_path not in paths
    assert {tmp_path / "bin", tmp_path / "lib"} <= paths


def test_grants_are_ordered_and_the_stricter_one_wins(tmp_path):
    project, state = tmp_path / "p", tmp_path / "s"
    (project / "a").mkdir(parents=True)
    state.mkdir()
    given = grants(
        [],
        Confinement(
            writable=(project, project / "a"), read_only=(project / "a",), hidden=(state,)
        ),
    )
    depths = [len(grant.path.parts) for grant in given]
    assert depths == sorted(depths)
    assert {grant.path: grant.access for grant in given}[project / "a"] is Access.READ
    assert state not in {grant.path for grant in given}, "what is not granted needs no hiding"


def test_a_relative_path_is_refused(tmp_path):
    with pytest.raises(SandboxError, match="not absolute"):
        grants([], Confinement(writable=(Path("relative"),)))


def test_graphics_processors_are_found_by_their_nodes(tmp_path):
    for name in ("nvidia0", "nvidiactl", "kfd", "sda"):
        (tmp_path / name).touch()
    assert [path.name for path in accelerators(tmp_path)] == ["kfd", "nvidia0", "nvidiactl"]


def test_arguments_and_input_reach_the_program_unchanged(place, tmp_path):
    program = tmp_path / "with space's" / "the program"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nfor word in "$@"; do echo "<$word>"; done; cat; exit 6\n')
    program.chmod(0o755)
    command = [
        *place.sandbox.command([str(program)], place.confinement(), environment={}),
        "one two",
        "$HOME",
        "",
        "--x='y'",
    ]
    done = subprocess.run(
        command, input=b"in", capture_output=True, cwd=place.project, check=False
    )
    assert (done.returncode, done.stdout) == (
        6,
        b"<one two>\n<$HOME>\n<>\n<--x='y'>\nin",
    ), done.stderr


@pytest.fixture
def reasons(monkeypatch):
    """Sets which kinds work, without trying them."""

    def set_reasons(**given: str | None) -> None:
        monkeypatch.setattr(select, "_reason", lambda kind: given.get(kind.value))

    return set_reasons


def test_the_strongest_is_chosen(reasons):
    reasons()
    assert select.choose(None, required=True).kind is SandboxKind.BWRAP
    reasons(bwrap="it is not installed")
    assert select.choose(None, required=True).kind is SandboxKind.LANDLOCK
    reasons(bwrap="it is not installed", landlock="the kernel has none")
    assert select.choose(None, required=False).kind is SandboxKind.NONE
    assert select.available()[SandboxKind.LANDLOCK] == "the kernel has none"


def test_required_refuses_none(reasons):
    reasons(bwrap="it is not installed", landlock="the kernel has none")
    with pytest.raises(
        SandboxError, match="bwrap: it is not installed; landlock: the kernel has none"
    ):
        select.choose(None, required=True)
    with pytest.raises(SandboxError, match="Isolation is required"):
        select.choose(SandboxKind.NONE, required=True)


def test_a_preferred_sandbox_is_never_replaced_in_silence(reasons):
    reasons(bwrap="it is not installed")
    with pytest.raises(SandboxError, match="bwrap was asked for, but it is not installed"):
        select.choose(SandboxKind.BWRAP, required=False)
    assert select.choose(SandboxKind.NONE, required=False).kind is SandboxKind.NONE


def test_other_systems_are_told_so(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "this is darwin" in str(select._reason.__wrapped__(SandboxKind.LANDLOCK))
