"""A child of a judge's server is known by a secret that it was handed, and by nothing that it can
say."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from harness.domain.statuses import SandboxKind
from harness.judge.identity import (
    ISOLATED,
    Announcement,
    announce,
    announcements,
    forget_the_dead,
    handed_on,
    verify,
)

WHO = """
import os, sys
from pathlib import Path
from harness.judge.identity import verify
known = verify(os.environ, Path(sys.argv[1]))
print(known and f"{known.kind}:{known.sandbox}")
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def server(state: Path) -> Announcement:
    return announce(state, kind=ISOLATED, sandbox=SandboxKind.BWRAP)


def asked(state: Path, environment: dict[str, str], *kept: int, program: str = WHO) -> str:
    words = [sys.executable, "-I", "-c", program, str(state)]
    done = subprocess.run(
        words, env=environment, pass_fds=kept, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_child_that_was_handed_the_token_is_known(state: Path, server: Announcement) -> None:
    assert asked(state, server.environment, server.descriptor) == "isolated:bwrap"
    assert asked(state, server.environment, server.descriptor) == "isolated:bwrap"


def test_a_child_hands_it_on(state: Path, server: Announcement) -> None:
    program = textwrap.dedent(
        f"""
        import os, subprocess, sys
        from harness.judge.identity import handed_on
        known, kept = handed_on(os.environ)
        words = [sys.executable, "-I", "-c", {WHO!r}, sys.argv[1]]
        subprocess.run(words, env=known, pass_fds=kept, check=True)
        """
    )
    told = asked(state, server.environment, server.descriptor, program=program)
    assert told == "isolated:bwrap"
    assert handed_on({}) == ({}, ())


def test_variables_alone_prove_nothing(state: Path, server: Announcement, tmp_path: Path) -> None:
    assert asked(state, server.environment) == "None"
    forged = tmp_path / "forged"
    forged.write_text(json.dumps({"token": "mine"}), "utf-8")
    descriptor = os.open(forged, os.O_RDONLY)
    environment = {**server.environment, "HARNESS_CALLER_FD": str(descriptor)}
    assert asked(state, environment, descriptor) == "None"
    hashed = json.loads(next(state.glob("judge/*.json")).read_text("utf-8"))["token"]
    forged.write_text(
        json.dumps({"token": hashed}), "utf-8"
    )  # what the file in the state directory says is no token
    assert asked(state, environment, descriptor) == "None"
    for named in ("", "-1", "x", "99", "9" * 40):
        assert verify({"HARNESS_CALLER_FD": named}, state) is None


def test_a_server_that_is_gone_vouches_for_nobody(state: Path, server: Announcement) -> None:
    ((path, about),) = announcements(state)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert forget_the_dead(state) == []
    about["server"]["started"] -= 1000.0  # the pid is another process's by now
    path.write_text(json.dumps(about), "utf-8")
    assert asked(state, server.environment, server.descriptor) == "None"
    assert [item["sandbox"] for item in forget_the_dead(state)] == ["bwrap"]
    assert list(announcements(state)) == []


def test_a_withdrawn_server_vouches_for_nobody(state: Path) -> None:
    server = announce(state, kind=ISOLATED, sandbox=SandboxKind.LANDLOCK)
    held = os.dup(server.descriptor)
    environment = {**server.environment, "HARNESS_CALLER_FD": str(held)}
    assert asked(state, environment, held) == "isolated:landlock"
    server.withdraw()
    assert asked(state, environment, held) == "None"


def test_who_lives_is_not_gone_although_its_file_is(state: Path, server: Announcement) -> None:
    """Another host that shares the directory takes its process for a dead one."""
    program = WHO.replace("verify", "is_orphan").split("print")[0] + "print(known)"
    assert asked(state, server.environment, server.descriptor, program=program) == "False"
    for path, _ in list(announcements(state)):
        path.unlink()
    assert asked(state, server.environment, server.descriptor) == "None"
    assert asked(state, server.environment, server.descriptor, program=program) == "False"
