"""Linked worktrees and clones of a small project, as git makes them."""

import os
import subprocess
from pathlib import Path

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "core.hooksPath=/dev/null")


def git(folder: Path, *words: str) -> str:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
    done = subprocess.run(
        ["git", *IDENTITY, *words],
        cwd=folder,
        env={**environment, "GIT_CONFIG_SYSTEM": os.devnull, "HOME": "/nonexistent"},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def commit_all(root: Path, message: str = "x") -> None:
    """All that is not ignored, in a repository that is made when there is none."""
    if not (root / ".git").exists():
        git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)


def add_worktree(root: Path, place: Path, branch: str = "trial") -> Path:
    git(root, "worktree", "add", "-q", "-b", branch, str(place))
    return place


def clone(root: Path, place: Path) -> Path:
    git(root.parent, "clone", "-q", str(root), str(place))
    return place
