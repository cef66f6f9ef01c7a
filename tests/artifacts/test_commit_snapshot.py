"""The code of a commit is what git holds, whatever lies in the working tree; no filter runs."""

import subprocess
from pathlib import Path

import pytest

from harness.artifacts.code_snapshot import take_snapshot
from harness.artifacts.commit_snapshot import commit_of, head_of, take_commit
from harness.artifacts.git import git_line
from harness.artifacts.objects import load_object
from harness.errors import UsageError


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git_line(), *identity, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project below the root of its repository, committed."""
    root = tmp_path / "mono" / "project"
    (root / "src").mkdir(parents=True)
    (root / "data").mkdir()
    for name, text in (
        ("predict.py", "print(1)\n"),
        ("src/run.sh", "exit\n"),
        ("data/train.csv", "x,y\n"),
        ("../other.py", ""),
    ):
        (root / name).write_text(text)
    (root / "src/run.sh").chmod(0o755)
    (root / "latest.py").symlink_to("predict.py")
    git(root.parent, "init", "-q")
    git(root.parent, "add", "-A")
    git(root.parent, "commit", "-q", "-m", "one")
    return root


def test_of_a_clean_tree_it_is_the_same_snapshot(root: Path, tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    now = take_snapshot(root, objects, exclude=["data/train.csv"])
    commit = commit_of(root, "HEAD")
    assert take_commit(root, commit, objects, exclude=["data/train.csv"]) == now
    assert head_of(root) == commit
    assert now.executable == ("src/run.sh",)
    assert now.links == {"latest.py": "predict.py"}


def test_nothing_of_the_working_tree_is_in_it(root: Path, tmp_path: Path) -> None:
    (root / "predict.py").write_text("print(2)\n")
    (root / "new.py").write_text("")
    (root / ".gitattributes").write_text("*.py filter=evil\n")
    git(root, "config", "filter.evil.smudge", f"touch {tmp_path / 'ran'}; cat")
    objects = tmp_path / "objects"
    taken = take_commit(root, commit_of(root, "HEAD"), objects)
    assert load_object(objects, taken.files["predict.py"]) == b"print(1)\n"
    assert "new.py" not in taken.files
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("revision", ["nobody", "--all", "HEAD:predict.py", ""])
def test_what_is_no_commit_is_refused(root: Path, revision: str) -> None:
    with pytest.raises(UsageError, match="is no commit") as refused:
        commit_of(root, revision)
    assert refused.value.code == "no_commit"


def test_without_a_repository_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no git repository"):
        commit_of(tmp_path, "HEAD")
    assert head_of(tmp_path) is None
