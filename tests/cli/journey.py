"""A small project that needs no torch, and the `harness` command run on it as a person would run
it."""

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.centroids import PREDICT, TRAIN
from tests.plan_text import plan_text
from tests.vault_key import give_key
from tests.warm import run_warm

PLAN = plan_text(
    "toy",
    "Classify three blobs",
    tiers="must: 0.80, should: 0.90, could: 0.999",
    budget="experiments: 8, run_minutes: 2, total_minutes: 20",
)


def blobs(rows: int, seed: int) -> dict[str, np.ndarray]:
    """x (rows, 4) float32 around one of three corners, y int64 in 0..2, id unique over seeds."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 3, rows)
    x = generator.normal(size=(rows, 4)).astype("float32")
    x[np.arange(rows), y] += 2.5
    return {"x": x, "y": y, "id": np.arange(rows) + seed * 100_000}


UNSANDBOXED = ("--sandbox", "none", "--reason", "A test of what runs there.")
"""What a person adds to run agents' code without a sandbox."""


@dataclass(frozen=True)
class Answer:
    exit_code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        value: dict[str, Any] = json.loads(self.stdout)
        return value


@dataclass(frozen=True)
class Journey:
    """A project folder, its own home, and the command."""

    root: Path
    home: Path

    def environment(self, **extra: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.home / "state"),
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
            **extra,
        }

    def harness(self, *words: str, cwd: Path | None = None, **extra: str) -> Answer:
        """As a person types it: human verbs want a terminal."""
        done = run_warm(words, cwd=cwd or self.root, env=self.environment(**extra))
        return Answer(done.returncode, done.stdout, done.stderr)

    def approve_changes(self) -> Answer:
        """Approve the plan again, as who has read what changed."""
        shown = self.harness("plan", "approve", "--json")
        assert shown.document["error"]["code"] == "changes_not_confirmed", shown.stdout
        (digest,) = re.findall(r"--changes (\w+)", shown.document["error"]["hint"])
        return self.harness("plan", "approve", "--changes", digest, "--json")

    @property
    def state(self) -> Path:
        (folder,) = (self.home / "state" / "harness").iterdir()
        return folder

    def projections(self) -> dict[str, bytes]:
        """Every rendered page and the facts' text form, by path."""
        base = self.root / ".harness"
        patterns = (
            "PRIORS.md",
            "experiments/CHECKLIST*.md",
            "memory/**/*.md",
            "memory/facts/*.jsonl",
        )
        pages = [page for pattern in patterns for page in base.glob(pattern)]
        return {str(page.relative_to(base)): page.read_bytes() for page in pages}


class Again:
    """A project that is made once, and put back as it was for each test that asks: same paths, same
    bytes, same times."""

    def __init__(self, base: Path, *steps: tuple[str, ...], one_key: bool = False) -> None:
        """`one_key`: seeds are the same whenever it is made."""
        self._used, self._kept, self._old = base / "used", base / "kept", base / "old"
        self._old.mkdir(parents=True)
        self._made = make_project(self._used / "project", self._used / "home")
        for words in steps:
            if one_key and words == ("plan", "approve"):
                give_key(self._made.state / "vault")
            answer = self._made.harness(*words)
            assert answer.exit_code == 0, (words, answer.stdout, answer.stderr)
        shutil.copytree(self._used, self._kept, symlinks=True)

    def journey(self) -> Journey:
        self._used.rename(self._old / str(len(list(self._old.iterdir()))))
        shutil.copytree(self._kept, self._used, symlinks=True)
        return self._made


def make_project(root: Path, home: Path) -> Journey:
    """A folder with data, plan, training and predict programs; not yet a harness project."""
    (root / "data").mkdir(parents=True)
    home.mkdir(parents=True)
    for name, rows, seed in (("train", 400, 1), ("validation", 200, 2), ("held_out", 200, 3)):
        np.savez(root / "data" / f"{name}.npz", **blobs(rows, seed))
    for name, text in (
        ("plan.md", PLAN),
        ("train.py", TRAIN),
        ("predict.py", PREDICT),
        (".gitignore", "data/\n"),
    ):
        (root / name).write_text(text, "utf-8")
    return Journey(root, home)
