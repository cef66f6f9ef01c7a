"""A project with one trained experiment, and every way by which a session may come to it."""

import contextlib
import hashlib
import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.ledger.verify import verify
from tests.cli.journey import Answer, Journey, make_project
from tests.interactive.sklearn_repository import git

RUN = ".harness/experiments/exp-0001/runs/run-01"


@dataclass(frozen=True)
class Lab:
    journey: Journey
    link: Path
    """A symbolic link to the project."""
    worktree: Path
    """A linked worktree of it."""
    other: Path
    """Another repository, without a harness."""

    @property
    def root(self) -> Path:
        return self.journey.root

    @property
    def home(self) -> Path:
        return self.journey.home

    @property
    def state(self) -> Path:
        """The state directory; beside it stands what hooks compiled."""
        return Path(json.loads((self.root / ".harness/policy.json").read_text("utf-8"))["state"])

    def kept(self, root: Path | None = None) -> dict[str, Path]:
        """What no session may change, by name; in-project files below `root`, the project's own
        unless given."""
        base = root or self.root
        return {
            "ledger": self.state / "ledger.db",
            "policy": base / ".harness/policy.json",
            "hook": base / ".claude/hooks/harness/run.py",
            "settings": base / ".claude/settings.json",
            "artifact": base / RUN / "metrics.jsonl",
        }

    def hashes(self) -> dict[str, str]:
        """Content of everything kept, the whole control folders included; not what SQLite keeps
        beside its file. Each session leaves its start in the ledger, so of ledger and anchors
        stands here what holds whatever sessions began."""
        folders = [self.state, self.root / ".claude", self.root / ".harness/experiments"]
        folders += [self.worktree / ".claude", self.worktree / ".harness"]
        files = [
            path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()
        ]
        files += [
            self.root / ".harness/policy.json",
            self.root / ".harness/config.toml",
            self.root / "plan.md",
        ]
        ledger, anchors = self.state / "ledger.db", self.state / "anchors"
        kept = [
            path
            for path in files
            # Nor what a look remembers of files that it read.
            if not path.name.endswith(("-wal", "-shm")) and not path.name.startswith("looked-")
        ]
        hashes = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}
        moving = {str(path): anchored(path, ledger) for path in anchors.glob("*.json")}
        assert moving, "a ledger has an anchor"
        assert verify(ledger, anchors) == []
        return hashes | moving | {str(ledger): facts_of(ledger)}


STARTS = {"session_began", "session_seen", "hand_off_written"}
"""Facts that each session leaves, by its hooks."""


def facts_of(ledger: Path) -> str:
    """A digest of all facts but those that each session leaves."""
    rows = [row for row in read_facts(ledger, "seq, kind, data") if row[1] not in STARTS]
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def anchored(path: Path, ledger: Path) -> str:
    """Whether an anchor names a fact of its writer after which only sessions left theirs; else what it
    says."""
    said = json.loads(path.read_bytes())
    rows = [
        row[1:] for row in read_facts(ledger, "writer, seq, hash, kind") if row[0] == path.stem
    ]
    named = [row for row in rows if row[:2] == (said["seq"], said["hash"])]
    later = {kind for seq, _, kind in rows if seq > said["seq"]}
    return "holds" if named and later <= STARTS else str(said)


def read_facts(ledger: Path, columns: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as database:
        return list(database.execute(f"SELECT {columns} FROM facts ORDER BY position"))


def facts_named(ledger: Path, kind: str) -> list[dict[str, Any]]:
    """What the facts of one kind say, oldest first."""
    rows = read_facts(ledger, "kind, data")
    return [json.loads(data)["body"] for name, data in rows if name == kind]


def make_fresh(base: Path, *init: str) -> Journey:
    """A git repository, initialised with further words for `harness init`, its plan approved."""
    journey = make_project(base / "my project", base / "home")
    git(journey.root, "init", "-q", "-b", "main")
    must(journey.harness("init", *init))
    must(journey.harness("plan", "approve"))
    return journey


def make_lab(base: Path) -> Lab:
    """One experiment trained and not judged; committed, so that worktrees have it too."""
    journey = make_fresh(base)
    root = journey.root
    must(journey.harness("experiment", "new", "--hypothesis", "centroids"))
    must(journey.harness("train", "exp-0001"))
    (root / "sub").mkdir()
    (root / "sub/notes.txt").write_text("n\n", "utf-8")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "A project")
    git(root, "worktree", "add", "-q", "-b", "side", str(base / "a worktree"))
    (base / "link").symlink_to(root)
    other = base / "other"
    other.mkdir()
    git(other, "init", "-q")
    return Lab(journey, base / "link", base / "a worktree", other)


def must(answer: Answer) -> Answer:
    assert answer.exit_code == 0, answer.stdout + answer.stderr
    return answer
