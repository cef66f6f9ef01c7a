"""The store that machines share: a folder, and S3 as moto's local server has it."""

import os

import pytest

from harness.artifacts.content import hash_path
from harness.artifacts.objects import ObjectDamagedError
from harness.artifacts.remote import RemoteStore
from harness.errors import NotFoundError, RefusedError, UsageError

pytest.importorskip("fsspec")
BUCKET = "experiments"


@pytest.fixture(scope="module")
def s3():
    """The address of a server on loopback with one empty bucket."""
    pytest.importorskip("s3fs")
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["file", "s3"])
def store(request, tmp_path, monkeypatch):
    if request.param == "file":
        return RemoteStore(f"file://{tmp_path}/store")
    monkeypatch.setenv("AWS_ENDPOINT_URL", request.getfixturevalue("s3"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    made = RemoteStore(f"s3://{BUCKET}/{tmp_path.name.replace('_', '-')}")
    if not made._fs.exists(BUCKET):
        made._fs.mkdir(BUCKET)
    return made


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(os.urandom(3 << 20))
    return path


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "adapter"
    (path / "deep").mkdir(parents=True)
    (path / "a.bin").write_bytes(b"weights" * 1000)
    (path / "deep" / "b.json").write_text("{}")
    (path / "same.bin").write_bytes(b"weights" * 1000)
    (path / "empty").touch()
    return path


def test_a_file_comes_back_as_it_was_and_is_stored_once(store, model, tmp_path):
    digest = hash_path(model)
    assert store.put(model, digest) == (1, 3 << 20, 0)
    assert store.put(model, digest) == (0, 0, 1)
    store.get(digest, tmp_path / "far" / "model.pt")
    assert (tmp_path / "far" / "model.pt").read_bytes() == model.read_bytes()
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["model.pt"]


def test_a_folder_comes_back_whole_and_what_is_equal_is_stored_once(store, folder, tmp_path):
    digest = hash_path(folder)
    sent = store.put(folder, digest)
    assert (sent.files, sent.known) == (3, 1)
    (folder / "a.bin").write_bytes(b"trained on")
    assert store.put(folder, hash_path(folder)).files == 1
    store.get(digest, tmp_path / "back")
    assert hash_path(tmp_path / "back") == digest


def test_bytes_that_are_not_what_they_are_called_are_not_stored(store, model, folder, tmp_path):
    with pytest.raises(RefusedError, match="has changed since its run"):
        store.put(model, "0" * 64)
    with pytest.raises(RefusedError, match="has changed since its run"):
        store.put(folder, "0" * 64)
    with pytest.raises(NotFoundError, match="does not hold 000000000000"):
        store.get("0" * 64, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_other_bytes_in_the_store_are_named_and_leave_nothing(store, model, folder, tmp_path):
    for path in (model, folder):
        digest = hash_path(path)
        store.put(path, digest)
        kind = "folders" if path.is_dir() else "files"
        store._fs.pipe_file(store._key(kind, digest), b"[]")
        with pytest.raises(ObjectDamagedError, match="holds other bytes"):
            store.get(digest, tmp_path / "x")
        assert not (tmp_path / "x").exists()
        assert not list(tmp_path.glob(".x*"))


def test_a_link_is_refused(store, folder):
    (folder / "link").symlink_to("a.bin")
    with pytest.raises(RefusedError, match="is a link"):
        store.put(folder, hash_path(folder))


def test_a_store_that_is_not_there_is_an_answer(model, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be used"):
        RemoteStore(f"file://{tmp_path}/file/below").put(model, hash_path(model))
    pytest.importorskip("s3fs")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(UsageError, match="cannot be used"):
        RemoteStore("s3://nowhere/x").put(model, hash_path(model))
