"""The state directory is its owner's alone: whatever the umask, and where it was looser before."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.driver.environment import session_folders
from harness.files import atomic_write, lock, make_folder, private_folder, replacing
from harness.ledger.project import open_layout, open_project
from harness.ledger.spending import SpendingLog
from tests.cli.journey import make_project


def open_to_others(folder: Path) -> list[str]:
    """What group or others may do anything with, `folder` itself included."""
    return [
        f"{path}: {path.lstat().st_mode & 0o777:o}"
        for path in (folder, *folder.rglob("*"))
        if path.lstat().st_mode & 0o077 and not path.is_symlink()
    ]


@pytest.fixture(params=[0o022, 0o000], ids=["022", "000"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_nothing_in_it_is_open_to_others(tmp_path: Path, umask: int) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    tmp_path.chmod(0o755)
    for words in (
        ("init",),
        ("plan", "approve"),
        ("experiment", "new", "--hypothesis", "centroids"),
        ("train", "exp-0001"),
        ("evaluate", "exp-0001"),
    ):
        done = journey.harness(*words)
        assert done.exit_code == 0, done.stderr
        assert open_to_others(journey.state) == [], words
    assert journey.harness("gate", "check", "exp-0001").exit_code == 1
    assert list((journey.state / "vault" / "objects").iterdir())
    assert open_to_others(journey.state) == []
    # What is made in the project is shared as its owner's umask says.
    page = journey.root / ".harness/experiments/CHECKLIST.md"
    assert page.stat().st_mode & 0o044 == 0o044


def test_one_that_was_open_is_closed_when_it_is_opened(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    assert journey.harness("init").exit_code == 0
    assert journey.harness("plan", "approve").exit_code == 0
    inside = [journey.state, *journey.state.rglob("*")]
    for path in inside:
        path.chmod(0o777 if path.is_dir() else 0o666)
    assert len(open_to_others(journey.state)) == len(inside)
    assert journey.harness("status").exit_code == 0
    assert open_to_others(journey.state) == []
    (journey.state / "ledger.db").chmod(0o644)
    (journey.state / "anchors").chmod(0o755)
    next((journey.state / "anchors").glob("*.json")).chmod(0o644)
    assert journey.harness("status").exit_code == 0
    assert open_to_others(journey.state) == []


def test_sessions_and_the_spending_log_too(tmp_path: Path, umask: int) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    assert journey.harness("init").exit_code == 0
    layout = open_layout(journey.root, journey.environment())
    folders = session_folders(layout, "build-1-1")
    folders.create()
    SpendingLog(layout.spending, "toy").reserve(session="s", role="oracle", usd=1.0)
    with lock(layout.state / "locks" / "loop.lock"):
        pass
    with open_project(journey.root, journey.environment()):
        pass
    assert folders.temporary.is_dir()
    assert open_to_others(journey.state) == []


def test_what_lies_in_a_closed_folder_is_closed(tmp_path: Path, umask: int) -> None:
    closed, shared = tmp_path / "new" / "closed", tmp_path / "shared"
    private_folder(closed)
    shared.mkdir()
    shared.chmod(0o775)
    assert closed.parent.stat().st_mode & 0o777 == 0o700
    for folder, modes in (
        (closed, (0o700, 0o600, 0o400)),
        (shared, (0o775 & ~umask, 0o644, 0o444)),
    ):
        make_folder(folder / "a" / "b")
        atomic_write(folder / "c" / "file", "x")
        with replacing(folder / "object", mode=0o444) as new:
            new.stream.write(b"x")
        found = (folder / "a" / "b", folder / "c" / "file", folder / "object")
        assert tuple(path.stat().st_mode & 0o777 for path in found) == modes


def test_a_link_is_not_followed_out_of_it(tmp_path: Path) -> None:
    closed, other = tmp_path / "closed", tmp_path / "other"
    other.write_text("of the project", "utf-8")
    other.chmod(0o644)
    closed.mkdir(mode=0o755)
    (closed / "link").symlink_to(other)
    private_folder(closed)
    assert closed.stat().st_mode & 0o777 == 0o700
    assert other.stat().st_mode & 0o777 == 0o644
