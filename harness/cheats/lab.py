"""The lab: a classification problem whose law is known, and a project about it in its own folders.

Nine features, three classes. y is uniform on {0, 1, 2}; x_j ~ N(SHIFT if j % 3 == y else 0, 1),
independent. So the true accuracy of any predictor can be computed. The rows of a split follow from
its seed alone; FRESH rows are drawn from a seed that no file of a project holds.
"""

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from harness.cheats import forked
from harness.cheats.programs import FILES
from harness.process import end_group, start

CLASSES, FEATURES, SHIFT = 3, 9, 0.9
ROWS = {"train": 300, "validation": 400, "held_out": 400}
FRESH = 4000
CHANCE = 1 / CLASSES


@dataclass(frozen=True, kw_only=True)
class ProblemRows:
    x: NDArray[np.float32]
    """(n, FEATURES)"""
    y: NDArray[np.int64]
    """(n,)"""
    id: NDArray[np.int64]

    def arrays(self) -> dict[str, Any]:
        return {"x": self.x, "y": self.y, "id": self.id}


def draw(n: int, *seed: int) -> ProblemRows:
    """n rows by the law above; the same for the same `seed`."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, CLASSES, n)
    x = generator.normal(size=(n, FEATURES)).astype(np.float32)
    x[np.arange(FEATURES)[None, :] % CLASSES == y[:, None]] += SHIFT
    return ProblemRows(x=x, y=y, id=np.arange(n) + 1_000_000 * (sum(seed) + 1))


def split(name: str, seed: int) -> ProblemRows:
    return draw(ROWS[name], seed, list(ROWS).index(name))


def fresh(seed: int) -> ProblemRows:
    """Rows that nobody has seen, for the true accuracy."""
    return draw(FRESH, seed, 7919)


LONGEST_S = 120.0
LAB_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH")


@dataclass(frozen=True, kw_only=True)
class LabProject:
    base: Path
    seed: int

    @property
    def root(self) -> Path:
        return self.base / "project"

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def state(self) -> Path:
        return next(iter(sorted((self.home / "state" / "harness").iterdir())), self.home / "state")

    @property
    def mark(self) -> str:
        """Part of the command line of every process that an attack leaves behind."""
        return f"cheats-{self.base.name}-{os.getpid()}"

    def environment(self, **more: str) -> dict[str, str]:
        """All that a process of the lab sees: of ours PATH alone, no key, no home."""
        kept = {name: os.environ[name] for name in LAB_ENVIRONMENT if name in os.environ}
        folders = {
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.home / "state"),
            "TMPDIR": str(self.home / "tmp"),
        }
        (self.home / "tmp").mkdir(parents=True, exist_ok=True)
        return {
            **kept,
            **folders,
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            **more,
        }

    def write(self, files: Mapping[str, str], values: Mapping[str, str]) -> None:
        """Write `files` by path, `@NAME@` replaced by its value."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(filled(text, values), "utf-8")

    def run(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = LONGEST_S,
    ) -> "subprocess.CompletedProcess[str]":
        """Run to its end or limit, in the project, in a process group of its own; never raises for
        its failure."""
        started = start(argv, cwd=self.root, environment=environment or self.environment())
        try:
            out, err = started.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            end_group(started)
            out, err = started.communicate()
        # What it left running otherwise stays: `left_behind` looks for it.
        texts = (out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
        return subprocess.CompletedProcess(list(argv), started.returncode, *texts)

    def run_in_terminal(self, argv: Sequence[str]) -> str:
        """Run with a terminal of its own as standard input; what it printed."""
        ours, theirs = pty.openpty()
        try:
            ended = subprocess.run(
                list(argv),
                cwd=self.root,
                env=self.environment(),
                stdin=theirs,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LONGEST_S,
                check=False,
            )
        finally:
            os.close(ours)
            os.close(theirs)
        return ended.stdout + ended.stderr

    def harness(
        self, *words: str, timeout_s: float = LONGEST_S, anew: bool = False
    ) -> "subprocess.CompletedProcess[str]":
        """As a person types it; `anew`: by a program that starts from nothing, also where a copy of
        this process would do."""
        environment = self.environment()
        if forked.AVAILABLE and not anew:
            return forked.run(
                words,
                cwd=self.root,
                environment=environment,
                timeout_s=timeout_s,
            )
        return self.run([sys.executable, "-m", "harness", *words], timeout_s=timeout_s)

    def left_behind(self) -> list[psutil.Process]:
        """Living processes whose command line holds our mark."""
        living = []
        for process in psutil.process_iter():
            try:
                if (
                    self.mark in " ".join(process.cmdline())
                    and process.status() != psutil.STATUS_ZOMBIE
                ):
                    living.append(process)
            except psutil.Error:
                continue
        return living

    def copy_to(self, base: Path) -> "LabProject":
        """The same project and home elsewhere."""
        copied = LabProject(base=base, seed=self.seed)
        for mine, theirs in ((self.root, copied.root), (self.home, copied.home)):
            shutil.copytree(mine, theirs, symlinks=True)
        return copied


def filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def make_project(base: Path, seed: int) -> LabProject:
    """Data and honest programs; not yet a harness project."""
    place = LabProject(base=base, seed=seed)
    (place.root / "data").mkdir(parents=True)
    place.write(FILES, {})
    for name in ROWS:
        np.savez(place.root / "data" / f"{name}.npz", **split(name, seed).arrays())
    return place
