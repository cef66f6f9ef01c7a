"""What the tests of harness.runs share."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from harness.domain.sandbox import Completed, Confinement
from harness.domain.statuses import SandboxKind
from harness.ledger.project import Project
from harness.runs.train import TrainReport
from tests import blobs

Trainer = Callable[..., TrainReport]

PLAN = blobs.PLAN.replace("seeds: 3", "seeds: 2")

GOOD = """
from harness.run_logger import RunLogger

with RunLogger.from_environment() as log:
    log.start(total_epochs=3)
    for epoch in range(3):
        log.epoch(epoch, {"loss": 1 / (epoch + 1)})
    weights = log.checkpoint_dir / "weights.bin"
    weights.write_text(str(log.seed))
    log.checkpoint_saved(weights, epoch=2, final=True)
    print("trained")
"""


class Unconfined:
    """A Sandbox that adds nothing at all, not even the guardian of the real ones."""

    kind = SandboxKind.NONE

    def command(self, argv: Sequence[str], confinement: Confinement, **_: Any) -> list[str]:
        self.confinement = confinement
        return list(argv)

    def run(
        self,
        argv: Sequence[str],
        *,
        confinement: Confinement,
        cwd: Path,
        environment: Mapping[str, str],
        timeout_s: float,
        memory_bytes: int | None = None,
    ) -> Completed:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=dict(environment),
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
        return Completed(
            exit_code=done.returncode,
            stdout=done.stdout,
            stderr=done.stderr,
            timed_out=False,
            seconds=0.0,
        )


def register(project: Project) -> None:
    """A run of exp-0001 that nobody has launched."""
    project.ledger.register_run(
        experiment="exp-0001",
        seed=1,
        argv=["x"],
        code="c",
        data={},
        environment={},
        sandbox="none",
        token="t",
        session=None,
    )


def processes_with(text: str) -> list[int]:
    """Living processes that have `text` in their command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if text in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def wait_until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Fails when `condition` does not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
