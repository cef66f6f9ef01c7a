import os
from pathlib import Path

import pytest

from harness.artifacts.content import hash_path
from harness.artifacts.object_batch import ObjectBatch
from harness.artifacts.objects import (
    ObjectDamagedError,
    check_object,
    copy_file,
    load_object,
    store_bytes,
)
from harness.errors import NotFoundError, UsageError
from harness.files import sha256_bytes


def test_a_folder_is_named_by_paths_and_contents_alone(tmp_path: Path) -> None:
    for name, order in (("a", ["x/1", "2"]), ("b", ["2", "x/1"])):
        for path in order:
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(path)
    (tmp_path / "b/empty").mkdir()
    first = hash_path(tmp_path / "a")
    assert hash_path(tmp_path / "b") == first
    (tmp_path / "b/2").rename(tmp_path / "b/3")
    assert hash_path(tmp_path / "b") != first
    assert hash_path(tmp_path / "a/2") == sha256_bytes(b"2")


def test_links_count_by_their_target_and_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "a/w").write_text("w")
    plain = hash_path(tmp_path / "a")
    (tmp_path / "a/link").symlink_to(tmp_path / "outside")
    linked = hash_path(tmp_path / "a")
    (tmp_path / "outside/more").write_text("more")
    assert hash_path(tmp_path / "a") == linked != plain


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    os.mkfifo(tmp_path / "a/pipe")
    with pytest.raises(UsageError, match="not a regular file"):
        hash_path(tmp_path / "a")
    with pytest.raises(NotFoundError):
        hash_path(tmp_path / "none")


def test_objects_are_kept_once_and_verified(tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    (tmp_path / "f").write_bytes(b"data" * 1_000_000)
    with ObjectBatch(objects) as batch:
        name = batch.add_file(tmp_path / "f", below=tmp_path)
    inode = (objects / name).stat().st_ino
    with ObjectBatch(objects) as batch:
        again = batch.add_file(tmp_path / "f", below=tmp_path)
        assert again == name == store_bytes(b"data" * 1_000_000, objects)
    assert (objects / name).stat().st_ino == inode
    assert load_object(objects, name) == b"data" * 1_000_000
    assert [path.name for path in objects.iterdir()] == [name]
    (objects / name).chmod(0o600)
    (objects / name).write_bytes(b"other")
    with pytest.raises(ObjectDamagedError, match=f"expected SHA-256 {name[:12]}"):
        load_object(objects, name)
    with pytest.raises(ObjectDamagedError, match="missing"):
        check_object(objects / "0", "0" * 64)


def test_a_copy_that_is_not_what_was_asked_for_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    with pytest.raises(ObjectDamagedError):
        copy_file(tmp_path / "f", tmp_path / "vault", "0" * 64, suffix=".npz")
    assert list((tmp_path / "vault").iterdir()) == []
    copied = copy_file(tmp_path / "f", tmp_path / "vault", sha256_bytes(b"x"), suffix=".npz")
    assert copied.name == f"{sha256_bytes(b'x')}.npz"
    assert (
        copy_file(tmp_path / "f", tmp_path / "vault", sha256_bytes(b"x"), suffix=".npz") == copied
    )
