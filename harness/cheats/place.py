"""A project of the lab in folders of its own, and what is run on it, with an environment made from
nothing."""

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from harness.cheats.problem import ROWS, split
from harness.cheats.programs import FILES
from harness.process import end_group, start

LONGEST_S = 120.0
LAB_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH")


@dataclass(frozen=True, kw_only=True)
class Place:
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
        """Stands in the command line of whatever an attack leaves behind."""
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
        self, *words: str, timeout_s: float = LONGEST_S
    ) -> "subprocess.CompletedProcess[str]":
        return self.run([sys.executable, "-m", "harness", *words], timeout_s=timeout_s)

    def left_behind(self) -> list[psutil.Process]:
        """Living processes whose command line holds our mark."""
        found = []
        for process in psutil.process_iter():
            try:
                if (
                    self.mark in " ".join(process.cmdline())
                    and process.status() != psutil.STATUS_ZOMBIE
                ):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def copy_to(self, base: Path) -> "Place":
        """The same project and home elsewhere."""
        copied = Place(base=base, seed=self.seed)
        for mine, theirs in ((self.root, copied.root), (self.home, copied.home)):
            shutil.copytree(mine, theirs, symlinks=True)
        return copied


def filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def make_project(base: Path, seed: int) -> Place:
    """Data and honest programs; not yet a harness project."""
    place = Place(base=base, seed=seed)
    (place.root / "data").mkdir(parents=True)
    place.write(FILES, {})
    for name in ROWS:
        np.savez(place.root / "data" / f"{name}.npz", **split(name, seed).arrays())
    return place
