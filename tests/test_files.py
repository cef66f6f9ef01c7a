"""What a killed writer leaves is removed; what a living one writes is not."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness import files
from harness.files import atomic_write, remove_leftovers, replacing

KILLED = (
    "import os, sys, pathlib; from harness import files; os.fsync = lambda _: os.kill(os.getpid(),"
    " 9); "
)
WRITE = "files.atomic_write(pathlib.Path(sys.argv[1]), 'half')"


def test_what_a_killed_writer_left_is_removed(tmp_path: Path):
    path = tmp_path / "a [1].json"
    path.write_text("whole")
    assert subprocess.run([sys.executable, "-c", KILLED + WRITE, str(path)]).returncode == -9
    (tmp_path / ".a [1].json.mine.tmp").write_text("a person's")
    (tmp_path / ".other.abcdefgh.tmp").write_text("of another file")
    assert len(list(tmp_path.iterdir())) == 4
    assert len(remove_leftovers([path, tmp_path / "gone" / "x"])) == 1
    assert sorted(item.name for item in tmp_path.iterdir()) == [
        ".a [1].json.mine.tmp",
        ".other.abcdefgh.tmp",
        path.name,
    ]
    assert path.read_text() == "whole"


def test_what_is_being_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.json"
    here, on = threading.Event(), threading.Event()

    def slow(_descriptor: int) -> None:
        here.set()
        on.wait(60)

    monkeypatch.setattr(files.os, "fsync", slow)
    writing = threading.Thread(target=atomic_write, args=(path, "new"))
    writing.start()
    here.wait(60)
    assert remove_leftovers([path]) == []
    on.set()
    writing.join()
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_new_one_that_was_taken_for_a_leftover_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, real, taken = tmp_path / "a.json", files.fcntl.flock, []

    def late(descriptor: int, flags: int) -> None:
        if not taken:
            taken.extend(item for item in tmp_path.iterdir() if item.name.startswith("."))
            taken[0].unlink()
        real(descriptor, flags)

    monkeypatch.setattr(files.fcntl, "flock", late)
    atomic_write(path, "new")
    assert (path.read_text(), os.listdir(tmp_path)) == ("new", ["a.json"])


def test_a_pipe_and_a_link_of_such_a_name_stall_nothing(tmp_path: Path):
    os.mkfifo(tmp_path / ".a.json.abcdefgh.tmp")
    (tmp_path / ".a.json.abcdefgi.tmp").symlink_to(tmp_path)
    assert [item.name for item in remove_leftovers([tmp_path / "a.json"])] == [
        ".a.json.abcdefgh.tmp"
    ]


def test_a_walk_lists_links_to_folders_too_and_an_odd_file_is_named(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("a")
    assert files.irregular_file(tmp_path) is None
    os.mkfifo(tmp_path / "in" / "pipe")
    (tmp_path / "in" / "home").symlink_to("/")
    assert [path.name for path in files.walk_files(tmp_path)] == ["a", "home", "pipe"]
    assert files.irregular_file(tmp_path) == tmp_path / "in" / "home"
    (tmp_path / "in" / "home").unlink()
    assert files.irregular_file(tmp_path) == tmp_path / "in" / "pipe"


def test_no_link_below_is_followed_also_one_that_comes_meanwhile(tmp_path: Path):
    root, outside = tmp_path / "project", tmp_path / "outside"
    (root / "plans").mkdir(parents=True)
    outside.mkdir()
    path = root / "plans/new/plan.md"
    atomic_write(path, "first", below=root)
    assert path.read_text() == "first"
    with replacing(path, below=root) as new:
        new.stream.write(b"second")
        # The folder goes away and a link stands in its place, after it was looked at.
        path.parent.rename(root / "plans/old")
        path.parent.symlink_to(outside)
    assert (root / "plans/old/plan.md").read_text() == "second"
    with pytest.raises(OSError, match=r"new"):
        atomic_write(path, "third", below=root)
    assert list(outside.iterdir()) == []
    # A link in the file's own place is replaced, not followed.
    (outside / "mine").write_text("a person's")
    path.parent.unlink()
    path.parent.mkdir()
    path.symlink_to(outside / "mine")
    atomic_write(path, "fourth", below=root)
    assert (path.read_text(), path.is_symlink()) == ("fourth", False)
    assert (outside / "mine").read_text() == "a person's"
