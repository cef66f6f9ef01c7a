"""A small project that needs no torch, and the `harness` command run on it as a person would run it."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.terminal import run_in_terminal

PLAN = """\
---
schema: 1
name: toy
workflow: classical-ml
objective: Classify three blobs
data:
  train: data/train.npz
  validation: data/validation.npz
  held_out: {path: data/held_out.npz, inputs: [x], label: y, id: id}
oracle:
  metric: accuracy
  direction: maximize
  scorer: accuracy
  predict: python predict.py
  tiers: {must: 0.80, should: 0.90, could: 0.999}
  seeds: 3
  queries: 20
training: {entry: python train.py, checkpoint_every: 10}
budget: {experiments: 8, run_minutes: 2, total_minutes: 20}
loop: {stop_tier: must, patience: 3}
gates: {mode: auto}
agents: {profile: default}
---
Blobs.
"""

TRAIN = """\
import numpy as np

from harness.run_logger import RunLogger

with RunLogger.from_environment() as log:
    table = np.load("data/train.npz")
    rows = np.random.default_rng(log.seed).choice(len(table["y"]), 300, replace=False)
    x, y = table["x"][rows], table["y"][rows]
    log.start(total_epochs=1)
    centroids = np.stack([x[y == label].mean(0) for label in range(3)])
    log.epoch(0, {"loss": float(((x - centroids[y]) ** 2).mean())})
    path = log.checkpoint_dir / "centroids.npy"
    np.save(path, centroids)
    log.checkpoint_saved(path, epoch=0, final=True)
"""

PREDICT = """\
import os

import numpy as np

centroids = np.load(os.environ["HARNESS_CHECKPOINT"])
table = np.load(os.environ["HARNESS_INPUTS"])
nearest = ((table["x"][:, None] - centroids[None]) ** 2).sum(-1).argmin(1)
np.savez(os.environ["HARNESS_PREDICTIONS"], id=table["id"], prediction=nearest)
"""


def blobs(rows: int, seed: int) -> dict[str, np.ndarray]:
    """x (rows, 4) float32 around one of three corners, y int64 in 0..2, id unique over seeds."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 3, rows)
    x = generator.normal(size=(rows, 4)).astype("float32")
    x[np.arange(rows), y] += 2.5
    return {"x": x, "y": y, "id": np.arange(rows) + seed * 100_000}


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
        command = [sys.executable, "-m", "harness", *words]
        done = run_in_terminal(command, cwd=cwd or self.root, env=self.environment(**extra))
        return Answer(done.returncode, done.stdout, done.stderr)

    @property
    def state(self) -> Path:
        (folder,) = (self.home / "state" / "harness").iterdir()
        return folder

    def projections(self) -> dict[str, bytes]:
        """Every rendered page and the facts' text form, by path."""
        base = self.root / ".harness"
        patterns = ("PRIORS.md", "experiments/CHECKLIST*.md", "memory/**/*.md", "memory/facts/*.jsonl")
        pages = [page for pattern in patterns for page in base.glob(pattern)]
        return {str(page.relative_to(base)): page.read_bytes() for page in pages}


def make_project(root: Path, home: Path) -> Journey:
    """A folder with data, plan, training and predict programs; not yet a harness project."""
    (root / "data").mkdir(parents=True)
    home.mkdir(parents=True)
    for name, rows, seed in (("train", 400, 1), ("validation", 200, 2), ("held_out", 200, 3)):
        np.savez(root / "data" / f"{name}.npz", **blobs(rows, seed))
    for name, text in (("plan.md", PLAN), ("train.py", TRAIN), ("predict.py", PREDICT), (".gitignore", "data/\n")):
        (root / name).write_text(text, "utf-8")
    return Journey(root, home)
