"""Children of the loop and of the tool server are known as what started them, and as no more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.domain.grade import OPEN, PERSON, UNKNOWN, Caller, CallerKind
from harness.domain.statuses import SandboxKind
from harness.driver.vouching import vouching
from harness.judge.identity import CALLER, DESCRIPTOR, announcements, handed_on

WHO = """
import os, sys
from pathlib import Path
from harness.cli.person import caller_of
print(caller_of(os.environ, Path(sys.argv[1])))
"""
DRIVERS = [Caller(CallerKind.DRIVER, kind) for kind in SandboxKind]

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="nothing is proven there")


def child(state: Path, known: dict[str, str], descriptors: tuple[int, ...] = ()) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-c", WHO, str(state)],
        env=known,
        pass_fds=descriptors,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("caller", [PERSON, OPEN, UNKNOWN, *DRIVERS], ids=str)
def test_a_child_is_known_as_its_parent(tmp_path: Path, caller: Caller) -> None:
    before = dict(os.environ)
    with vouching(tmp_path, caller):
        known, descriptors = handed_on(os.environ)
        assert child(tmp_path, known, tuple(descriptors)) == str(caller)
    assert dict(os.environ) == before
    assert list(announcements(tmp_path)) == []


@pytest.mark.parametrize("caller", DRIVERS, ids=str)
def test_without_the_secret_the_name_lowers(tmp_path: Path, caller: Caller) -> None:
    with vouching(tmp_path, caller):
        known, _ = handed_on(os.environ)
        assert child(tmp_path, known) == "unknown"
        assert child(tmp_path, {CALLER: known[CALLER]}) == "unknown"
    assert child(tmp_path, {DESCRIPTOR: "0"}) == "person"


def test_what_was_handed_to_us_is_handed_on(tmp_path: Path) -> None:
    """A tool server below a judge's server does not call itself anything else."""
    with vouching(tmp_path, Caller(CallerKind.ISOLATED, SandboxKind.BWRAP)):
        outer = dict(os.environ)
        with vouching(tmp_path, PERSON):
            known, descriptors = handed_on(os.environ)
            assert child(tmp_path, known, tuple(descriptors)) == "isolated:bwrap"
        assert dict(os.environ) == outer
