"""Only changed files are read again, and the objects of the vault are whole or not there."""

import os
import time
from pathlib import Path

import pytest

from harness.artifacts.code_snapshot import load_snapshot, materialise, take_snapshot
from harness.artifacts.object_batch import ObjectBatch
from harness.artifacts.objects import load_object

OLD_NS = 60_000_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    for name in ("a.py", "b.py"):
        (root / name).write_text(f"NAME = {name!r}\n")
    return root


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were read for a snapshot, in order."""
    names: list[str] = []
    add = ObjectBatch.add_file

    def noted(self: ObjectBatch, path: Path, *, below: Path) -> str:
        names.append(path.name)
        return add(self, path, below=below)

    monkeypatch.setattr(ObjectBatch, "add_file", noted)
    return names


def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are older than the coarsest clock by now."""
    monkeypatch.setattr(time, "time_ns", lambda now=time.time_ns: now() + OLD_NS)


def test_only_what_changed_is_read_again(
    root: Path, tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    objects, index = tmp_path / "objects", tmp_path / "index.json"
    later(monkeypatch)
    first = take_snapshot(root, objects, index=index)
    assert read == ["a.py", "b.py"]
    assert take_snapshot(root, objects, index=index) == first
    assert read == ["a.py", "b.py"]
    # Same size, and a time of modification that says that nothing happened.
    status = (root / "b.py").stat()
    (root / "b.py").write_text("NAME = 'B.py'\n")
    os.utime(root / "b.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    second = take_snapshot(root, objects, index=index)
    assert read == ["a.py", "b.py", "b.py"]
    assert load_object(objects, second.files["b.py"]) == b"NAME = 'B.py'\n"
    index.write_bytes(b"no index")
    assert take_snapshot(root, objects, index=index) == second


def test_a_file_that_changed_just_now_is_read_again(
    root: Path, tmp_path: Path, read: list[str]
) -> None:
    """It could change once more within the same tick of the file system's clock."""
    for _ in range(2):
        take_snapshot(root, tmp_path / "objects", index=tmp_path / "index.json")
    assert read == ["a.py", "b.py"] * 2


def test_a_damaged_object_is_put_back_from_the_live_file(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects, index = tmp_path / "objects", tmp_path / "index.json"
    later(monkeypatch)
    snapshot = take_snapshot(root, objects, index=index)
    damaged, missing = (objects / snapshot.files[name] for name in ("a.py", "b.py"))
    damaged.chmod(0o600)
    damaged.write_bytes(b"")  # as a power cut leaves a file that was not synced
    missing.unlink()
    assert take_snapshot(root, objects, index=index) == snapshot, "nothing new to read"
    assert (
        materialise(load_snapshot(objects, snapshot.hash), objects, tmp_path / "w", live=root)
        == []
    )
    for name in ("a.py", "b.py"):
        assert (tmp_path / "w" / name).read_bytes() == (root / name).read_bytes()
        assert load_object(objects, snapshot.files[name]) == (root / name).read_bytes()


def test_an_object_of_another_size_is_written_anew(root: Path, tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    snapshot = take_snapshot(root, objects)
    damaged = objects / snapshot.files["a.py"]
    damaged.chmod(0o600)
    damaged.write_bytes(b"")
    take_snapshot(root, objects)
    assert load_object(objects, snapshot.files["a.py"]) == (root / "a.py").read_bytes()


def test_a_killed_batch_names_nothing_and_the_next_one_removes_it(
    root: Path, tmp_path: Path
) -> None:
    objects = tmp_path / "objects"
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        with ObjectBatch(objects) as batch:
            batch.add(b"half of a snapshot")
            os.write(writer, b"x")
            os.kill(os.getpid(), 9)
    os.read(reader, 1)
    os.waitpid(child, 0)
    incoming = tmp_path / "objects.incoming"
    assert list(objects.iterdir()) == []
    assert [path.name for path in incoming.glob("*/*")] != []
    with ObjectBatch(objects) as batch:
        name = batch.add(b"whole")
    assert [path.name for path in objects.iterdir()] == [name]
    assert list(incoming.glob("*/*")) == []


def test_byte_code_and_a_commands_own_output_are_no_code(root: Path, tmp_path: Path) -> None:
    (root / "pkg/__pycache__").mkdir(parents=True)
    for name in ("pkg/__pycache__/x.cpython-311.pyc", "old.pyc", "nohup.out"):
        (root / name).write_text("x")
    assert list(take_snapshot(root, tmp_path / "objects").files) == ["a.py", "b.py"]
