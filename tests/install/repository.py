"""Repositories to install into, and their whole content to compare."""

import os
import subprocess
from pathlib import Path

from harness.domain.statuses import HooksMode
from harness.install.install import Installation, install
from harness.install.removal import Removal, remove

BY = "human:ada"
GIT = ("-c", "user.name=ada", "-c", "user.email=ada@localhost", "-c", "init.defaultBranch=main")


def tree(root: Path) -> dict[str, tuple[str, bytes]]:
    """Everything below `root` but git's own folder: path -> (kind and permissions, bytes or target
    of a link)."""
    found = {}
    for folder, directories, names in os.walk(root):
        directories[:] = [name for name in directories if name != ".git"]
        for name in (*directories, *names):
            path = Path(folder, name)
            mode = oct(path.lstat().st_mode)
            found[path.relative_to(root).as_posix()] = (mode, _content(path))
    return found


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return os.fsencode(path.readlink())
    return b"" if path.is_dir() else path.read_bytes()


def git(root: Path, *words: str) -> str:
    command = ["git", *GIT, *words]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def sklearn_like(root: Path) -> Path:
    """Existing code, its own Claude Code settings, committed."""
    (root / "src" / "churn").mkdir(parents=True)
    (root / "src" / "churn" / "model.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
    )
    (root / "README.md").write_text("# churn\n")
    (root / ".gitignore").write_text("data/\n")
    (root / ".claude" / "commands").mkdir(parents=True)
    (root / ".claude" / "commands" / "mine.md").write_text("Do my thing.\n")
    (root / ".claude" / "settings.json").write_bytes(
        b'{\r\n    "permissions" : {"allow": ["Bash(pytest:*)"]},\r\n    "hooks": {\r\n       '
        b' "PreToolUse": [\r\n            {"matcher": "Bash", "hooks": [{"type": "command",'
        b' "command": "./check.sh"}]}\r\n        ]\r\n    },\r\n    "unknown": {"kept": [1, 2.50,'
        b" 1e3]}\r\n}"
    )
    (root / ".claude" / "settings.json").chmod(0o600)
    (root / ".mcp.json").write_text('{"mcpServers": {"files": {"command": "files-server"}}}\n')
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Churn")
    return root


class Person:
    """Somebody with a home of their own who installs and removes."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        self.environment = {
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "PATH": "/usr/bin:/bin",
        }

    def install(
        self, root: Path, mode: HooksMode | None = None, *, dry_run: bool = False
    ) -> Installation:
        return install(root, mode, self.environment, by=BY, dry_run=dry_run)

    def remove(self, root: Path, *, dry_run: bool = False) -> Removal:
        return remove(root, self.environment, by=BY, dry_run=dry_run)
