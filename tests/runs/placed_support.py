"""A project of one experiment whose seeds `harness train --launcher NAME` puts elsewhere."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain.grade import PERSON
from harness.ledger.project import Project, open_project
from harness.plans.approval import approve_plan
from harness.process import harness_command
from harness.settings import CONFIG
from tests import blobs

SLOW = """
import os, time
from pathlib import Path
from harness.run_logger import RunLogger

with RunLogger.from_environment() as log:
    log.start(total_epochs=EPOCHS)
    first = 0
    weights = log.checkpoint_dir / "weights.bin"
    if weights.exists():
        first = int(weights.read_text()) + 1
        log.resumed()
    for epoch in range(first, EPOCHS):
        log.epoch(epoch, {"loss": 1 / (epoch + 1)})
        weights.with_suffix(".part").write_text(str(epoch))
        weights.with_suffix(".part").replace(weights)  # a kill may come at any moment
        log.checkpoint_saved(weights, epoch=epoch, final=epoch == EPOCHS - 1)
        time.sleep(PAUSE)
    print("cards", os.environ.get("CUDA_VISIBLE_DEVICES"))
"""


def program(epochs: int = 3, pause: float = 0.05) -> str:
    return SLOW.replace("EPOCHS", str(epochs)).replace("PAUSE", str(pause))


@dataclass
class Placing:
    """`harness train` as a person types it, in a process of its own."""

    root: Path
    environment: Mapping[str, str]

    def project(self, **more: Any) -> Project:
        return open_project(self.root, self.environment, caller=PERSON, **more)

    @property
    def state(self) -> Path:
        with self.project(read_only=True) as opened:
            return opened.layout.state

    def start(self, *words: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            harness_command("train", "--project", str(self.root), "--json", *words),
            cwd=self.root,
            env={**self.environment, "OMP_NUM_THREADS": "1", **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def train(self, *words: str, **more: str) -> dict[str, Any]:
        return answer(self.start(*words, **more))


def answer(process: subprocess.Popen[str], seconds: float = 240) -> dict[str, Any]:
    stdout, stderr = process.communicate(timeout=seconds)
    assert stdout, stderr
    said: dict[str, Any] = json.loads(stdout)
    return {**said, "exit": process.returncode, "stderr": stderr}


def placing(
    folder: Path,
    config: str,
    *,
    seeds: int = 2,
    experiments: int = 1,
    train: str | None = None,
) -> Placing:
    """An approved plan, with `config` below config.toml."""
    plan = blobs.PLAN.replace("seeds: 3", f"seeds: {seeds}")
    plan = plan.replace("experiments: 3", f"experiments: {max(3, experiments)}")
    plan = plan.replace("total_minutes: 5", "total_minutes: 500")
    root = blobs.make_root(folder / "my project", plan=plan, train=train or program())
    with (root / CONFIG).open("a") as stream:
        stream.write(config)
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    environment = {**blobs.own_environment(folder), **kept}
    made = Placing(root, environment)
    with made.project() as opened:
        approve_plan(opened, root / "plan.md", by="tester")
        for _ in range(experiments):
            opened.ledger.open_experiment(hypothesis="blobs differ", parent=None, by="tester")
    return made


def rows_of(placed: Placing, experiment: str = "exp-0001", run: str = "run-01") -> str:
    with placed.project(read_only=True) as opened:
        path = opened.layout.run(experiment, run, "metrics")
        return path.read_text("utf-8") if path.exists() else ""


def logs(placed: Placing, experiment: str, run: str) -> str:
    with placed.project(read_only=True) as opened:
        return opened.layout.run(experiment, run, "stdout").read_text("utf-8")


PYTHON = sys.executable
