"""Replicas as a command line starts them, and what they left."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[2]
LOOP = Path(__file__).with_name("diloco_loop.py")
LIMIT_S = 240.0
"""Of a run: nothing hangs past it. Loading torch takes most of it on a busy machine."""
QUICK = {"join_s": 2.0, "heartbeat_s": 1.0, "timeout_s": 20.0}


STARTED: list["Replicas"] = []


def end_all() -> None:
    """What a test that failed left running."""
    while STARTED:
        STARTED.pop().end()


@dataclass
class Replicas:
    """A started crew and its folder."""

    folder: Path
    case: dict[str, Any] = field(default_factory=dict)
    said: dict[str, Any] = field(default_factory=dict)
    replicas: int = 2
    command: tuple[str, ...] = ("python", str(LOOP))
    seed: int = 3
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Replicas":
        (self.folder / "run").mkdir(parents=True, exist_ok=True)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT),
            "CASE": json.dumps(self.case),
            "HARNESS_CONFIG": json.dumps({"distributed": QUICK | self.said}),
            "HARNESS_RUN_DIR": str(self.folder / "run"),
            "HARNESS_EXPERIMENT": "exp-0001",
            "HARNESS_RUN": "run-01",
            "HARNESS_RUN_TOKEN": "t",
            "HARNESS_SEED": str(self.seed),
        }
        words = ["--replicas", str(self.replicas), "--", *self.command]
        with (self.folder / "err").open("ab") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "harness.training.replicas", *words],
                cwd=self.folder,
                env=environment,
                stdout=err,
                stderr=err,
            )
        STARTED.append(self)
        return self

    def wait(self) -> int:
        assert self.process is not None
        try:
            return self.process.wait(LIMIT_S)
        finally:
            self.end()

    def end(self) -> None:
        """Of this crew whatever still runs."""
        assert self.process is not None
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def processes(self) -> list[psutil.Process]:
        assert self.process is not None
        try:
            crew = psutil.Process(self.process.pid)
            return [crew, *crew.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def lighthouse(self) -> psutil.Process:
        """Its process; StopIteration while there is none."""
        name = "harness.training.replicas.lighthouse"
        return next(each for each in self.processes() if name in each.cmdline())

    def kill(self, replica: int) -> None:
        os.kill(self.standing(replica)["pid"], signal.SIGKILL)

    def until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT_S
        while not holds():
            assert self.process is not None
            assert self.process.poll() is None, self.err
            assert time.monotonic() < end, self.err
            time.sleep(0.02)

    def standing(self, replica: int) -> dict[str, Any]:
        try:
            told = json.loads((self.of(replica) / "replica.json").read_bytes())
        except (OSError, ValueError):
            return {"state": "starting", "round": 0, "step": 0, "pid": None}
        return dict(told)

    def of(self, replica: int) -> Path:
        return self.folder / "run" / "replicas" / str(replica)

    @property
    def err(self) -> str:
        return (self.folder / "err").read_text("utf-8", "replace")

    def kept(self, replica: int) -> list[dict[str, Any]]:
        lines = (self.of(replica) / "kept.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def digest(self, replica: int) -> str:
        return (self.of(replica) / "digest").read_text()

    def rows(self) -> list[dict[str, Any]]:
        lines = (self.folder / "run" / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def told(self, replica: int) -> list[str]:
        path = self.folder / "run" / "replicas.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        told = [json.loads(line) for line in lines]
        return [each["state"] for each in told if each["replica"] == replica]
