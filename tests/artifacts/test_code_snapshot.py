import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.artifacts.code_snapshot import (
    Snapshot,
    load_snapshot,
    materialise,
    read_snapshot,
    take_snapshot,
    write_snapshot,
)
from harness.artifacts.git import (
    GitFailedError,
    git_line,
    in_repository,
    listed_files,
    listing_of,
    run_git,
)
from harness.artifacts.object_batch import ObjectBatch
from harness.artifacts.objects import ObjectDamagedError, load_object, store_bytes
from harness.errors import UsageError
from harness.files import sha256_bytes


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git_line(), *identity, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    return tmp_path / "objects"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "a project"
    for name, text in {
        "train.py": "print(1)\n",
        "lib/é\nnet.py": "x = 1\n",
        "run.sh": "#!/bin/sh\n",
        ".harness/experiments/exp-0001/hypothesis.md": "h",
        ".claude/settings.local.json": "{}",
        ".mcp.json": "{}",
        ".venv/lib/x.py": "x",
        "lib/__pycache__/net.pyc": "x",
        "data/train.npz": "rows",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "run.sh").chmod(0o755)
    (root / "link.py").symlink_to("train.py")
    (root / "out").symlink_to("/etc")
    return root


def test_without_git_code_is_all_but_data_caches_and_our_own(root: Path, objects: Path) -> None:
    snapshot = take_snapshot(root, objects, exclude=["data/train.npz"])
    assert sorted(snapshot.files) == ["lib/é\nnet.py", "run.sh", "train.py"]
    assert snapshot.files["train.py"] == sha256_bytes(b"print(1)\n")
    assert snapshot.executable == ("run.sh",)
    assert snapshot.links == {"link.py": "train.py", "out": "/etc"}
    assert load_object(objects, snapshot.files["train.py"]) == b"print(1)\n"
    assert not any("passwd" in name for name in snapshot.files)


def test_with_git_tracked_and_untracked_files_count_and_ignored_ones_do_not(
    root: Path, objects: Path
) -> None:
    git(root, "init", "-q")
    (root / ".gitignore").write_text(".venv/\n*.pyc\n")
    (root / "gone.py").write_text("x")
    git(root, "add", "train.py", "gone.py")
    (root / "gone.py").unlink()
    snapshot = take_snapshot(root, objects, exclude=["data"])
    assert sorted(snapshot.files) == [".gitignore", "lib/é\nnet.py", "run.sh", "train.py"]
    assert snapshot.missing == ("gone.py",)


def test_a_project_in_a_subfolder_of_a_repository_is_that_folder(
    root: Path, objects: Path
) -> None:
    git(root, "init", "-q")
    assert list(take_snapshot(root / "lib", objects).files) == ["é\nnet.py"]


def test_a_repository_inside_the_project_is_code_too(root: Path, objects: Path) -> None:
    git(root, "init", "-q")
    (root / "vendored").mkdir()
    (root / "vendored/model.py").write_text("x")
    git(root / "vendored", "init", "-q")
    git(root / "vendored", "add", "model.py")
    git(root / "vendored", "commit", "-q", "-m", "x")
    names = take_snapshot(root, objects).files
    assert "vendored/model.py" in names
    assert not any(".git/" in name for name in names)


def test_the_hash_follows_content_mode_and_links_only(root: Path, objects: Path) -> None:
    first = take_snapshot(root, objects).hash
    (root / "train.py").touch()
    assert take_snapshot(root, objects).hash == first
    (root / "train.py").chmod(0o755)
    second = take_snapshot(root, objects).hash
    (root / "link.py").unlink()
    (root / "link.py").symlink_to("run.sh")
    third = take_snapshot(root, objects).hash
    (root / "train.py").write_text("print(2)\n")
    assert len({first, second, third, take_snapshot(root, objects).hash}) == 4


def test_nothing_outside_is_read_through_a_folder_that_became_a_link(
    root: Path, objects: Path, tmp_path: Path
) -> None:
    git(root, "init", "-q")
    (root / "sub").mkdir()
    (root / "sub/secret.txt").write_text("mine")
    git(root, "add", "sub/secret.txt")
    (root / "sub/secret.txt").unlink()
    (root / "sub").rmdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text("not mine")
    (root / "sub").symlink_to(tmp_path / "outside")
    snapshot = take_snapshot(root, objects)
    assert snapshot.unreadable == ("sub/secret.txt",)
    assert not (objects / sha256_bytes(b"not mine")).exists()


def test_what_cannot_be_read_is_reported(root: Path, objects: Path) -> None:
    os.mkfifo(root / "pipe")
    Path(os.fsdecode(os.fsencode(root) + b"/bad\xff.py")).write_text("x")
    assert set(take_snapshot(root, objects).unreadable) == {"pipe", "bad\\xff.py"}


def test_materialised_code_is_what_was_kept(root: Path, objects: Path, tmp_path: Path) -> None:
    kept = take_snapshot(root, objects)
    (root / "train.py").write_text("changed")
    snapshot = load_snapshot(objects, kept.hash)
    assert snapshot == kept
    target = tmp_path / "fresh"
    assert materialise(snapshot, objects, target) == ["out"]
    assert (target / "train.py").read_text() == "print(1)\n"
    assert (target / "lib/é\nnet.py").exists()
    assert os.access(target / "run.sh", os.X_OK)
    assert not os.access(target / "train.py", os.X_OK)
    assert os.readlink(target / "link.py") == "train.py"
    assert not (target / "out").is_symlink()
    with pytest.raises(UsageError, match="not empty"):
        materialise(snapshot, objects, target)


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/../../x"])
def test_a_crafted_snapshot_cannot_write_elsewhere(
    objects: Path, tmp_path: Path, name: str
) -> None:
    blob = store_bytes(b"x", objects)
    snapshot = Snapshot(hash="", files={name: blob}, links={})
    with pytest.raises(UsageError, match="outside its folder"):
        materialise(snapshot, objects, tmp_path / "fresh")


def test_a_damaged_blob_is_never_materialised(root: Path, objects: Path, tmp_path: Path) -> None:
    snapshot = take_snapshot(root, objects)
    blob = objects / snapshot.files["train.py"]
    blob.chmod(0o600)
    blob.write_text("evil")
    with pytest.raises(ObjectDamagedError, match="has changed: expected SHA-256"):
        materialise(snapshot, objects, tmp_path / "fresh")
    (objects / snapshot.hash).unlink()
    with pytest.raises(ObjectDamagedError, match="missing"):
        load_snapshot(objects, snapshot.hash)


def test_code_json_reads_back_and_a_change_is_noticed(
    root: Path, objects: Path, tmp_path: Path
) -> None:
    snapshot = take_snapshot(root, objects)
    path = tmp_path / "code.json"
    write_snapshot(snapshot, path)
    assert read_snapshot(path) == snapshot
    path.write_text(path.read_text().replace("train.py", "trian.py"))
    with pytest.raises(UsageError, match="was changed"):
        read_snapshot(path)
    path.write_text('{"hash": "')
    with pytest.raises(UsageError, match="is not a code snapshot"):
        read_snapshot(path)


def test_git_runs_nothing_that_the_repository_names(
    root: Path, objects: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\necho x >> '{mark}'\ncat\n")
    script.chmod(0o755)
    git(root, "init", "-q")
    git(root, "add", "train.py")
    for key in (
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.process",
        "diff.external",
        "core.pager",
    ):
        git(root, "config", key, str(script))
    git(root, "config", "core.hooksPath", str(tmp_path))
    (root / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (tmp_path / "post-index-change").write_text(script.read_text())
    (tmp_path / "post-index-change").chmod(0o755)
    (root / "train.py").write_text("changed\n")
    take_snapshot(root, objects)
    run_git(root, "hash-object", "--no-filters", "--", "train.py")
    assert listed_files(listing_of(root))
    assert not mark.exists()
    subprocess.run(["git", "status"], cwd=root, check=False, capture_output=True)
    assert mark.exists()  # an ordinary git would have run it


def test_the_caller_s_git_variables_do_not_mislead(
    root: Path, objects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = take_snapshot(root, objects)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_WORK_TREE", "/")
    assert take_snapshot(root, objects) == expected


def test_a_repository_that_git_does_not_accept_is_an_error(root: Path, objects: Path) -> None:
    (root / ".git").mkdir()
    with pytest.raises(GitFailedError, match="git does not accept it"):
        take_snapshot(root, objects)
    with pytest.raises(GitFailedError):
        in_repository(root / "lib")


def test_names_do_not_depend_on_the_locale(root: Path, objects: Path, tmp_path: Path) -> None:
    expected = take_snapshot(root, objects)
    program = (
        "import sys; from pathlib import Path; from harness.artifacts.code_snapshot import *\nroot,"
        " objects, target = map(Path, sys.argv[1:])\nsnapshot = take_snapshot(root, objects);"
        " materialise(snapshot, objects, target); print(snapshot.hash)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, root, objects, tmp_path / "fresh"],
        env={
            "LC_ALL": "C",
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "PATH": os.environ["PATH"],
        },
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,
    )
    assert done.stdout.decode().strip() == expected.hash, done.stderr.decode()
    assert (tmp_path / "fresh/lib/é\nnet.py").read_text() == "x = 1\n"


def test_a_folder_that_becomes_a_link_while_its_files_are_read_is_no_way_out(
    root: Path, objects: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = tmp_path / "vault"
    for folder, text in ((root / "sub", "mine"), (vault, "label")):
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text(text)
        (folder / "b.csv").write_text(text)
    add_file = ObjectBatch.add_file

    def then_exchanged(batch: ObjectBatch, path: Path, *, below: Path) -> str:
        digest = add_file(batch, path, below=below)
        if path.name == "a.csv":
            (root / "sub").rename(root / "aside")
            (root / "sub").symlink_to(vault)
        return digest

    monkeypatch.setattr(ObjectBatch, "add_file", then_exchanged)
    snapshot = take_snapshot(root, objects)
    assert "sub/a.csv" in snapshot.files
    assert "sub/b.csv" not in snapshot.files
    assert not (objects / sha256_bytes(b"label")).exists()
