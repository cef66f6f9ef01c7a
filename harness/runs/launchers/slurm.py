"""Slurm, by submitit: a job for the supervisor of each seed."""

import contextlib
import importlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain.launch_options import LOCAL, SLURM
from harness.errors import MissingExtraError, RunError
from harness.files import make_folder
from harness.process import OURS
from harness.runs.launchers.on_node import Watch
from harness.runs.launchers.placed import PlacedLauncher

SUBMITIT = "submitit"
_NAMES = {
    "partition": "partition",
    "account": "account",
    "qos": "qos",
    "constraint": "constraint",
    "gpus": "gpus_per_node",
    "cpus": "cpus_per_task",
    "setup": "setup",
    "more": "additional_parameters",
}
"""Of config.toml -> of submitit."""
_WARNED_S = 120
"""Between Slurm's USR2 and its time limit or the node's loss: to write a checkpoint and close."""
_ASKED_S = 20.0
_COMMAND_S = 30.0
_OVER = (
    *("CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL"),
    *("OUT_OF_MEMORY", "DEADLINE", "BOOT_FAIL"),
)
_OVER_OR_AGAIN = ("PREEMPTED", "REVOKED")
"""The job is queued again (`requeue` below), or goes on at another cluster, or is over."""


class SlurmEngine:
    """An Engine. What `[launchers.slurm]` says goes into the sbatch script."""

    name = SLURM
    most: int | None = None
    gpus = 0

    def __init__(
        self, options: Mapping[str, Any], *, inherited: Mapping[str, str], state: Path
    ) -> None:
        self._options, self._state = options, state

    def submit(self, watch: Watch, *, title: str, minutes: float) -> "_SlurmJob":
        try:
            with _only(watch.environment):
                executor = self.executor(title, minutes)
                job = executor.submit(watch)
        except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
            raise RunError(
                f"Slurm did not take {title}: {error}.",
                hint="Try `sbatch` by hand with what [launchers.slurm] of config.toml says.",
                code="slurm_refused",
            ) from error
        watcher = getattr(job, "watcher", None)
        if watcher is not None:
            watcher._delay_s = _ASKED_S  # ten minutes by default
        return _SlurmJob(job)

    def executor(self, title: str, minutes: float) -> Any:
        """submitit's, with the parameters of one job. Raises RuntimeError without srun."""
        submitit = _submitit()
        folder = self._state / "slurm"
        make_folder(folder)
        # -P -I: what lies in the folder that a job starts in is not imported.
        python = f"{shlex.quote(sys.executable)} -P -I"
        if self._options.get("cluster") == LOCAL:
            executor = submitit.LocalExecutor(folder, python=python)
            executor.update_parameters(timeout_min=self._minutes(minutes))
            return executor
        executor = submitit.SlurmExecutor(folder, python=python)
        executor.update_parameters(**self.parameters(title, minutes))
        return executor

    def parameters(self, title: str, minutes: float) -> dict[str, Any]:
        said = {_NAMES[name]: value for name, value in self._options.items() if name in _NAMES}
        said |= {"time": self._minutes(minutes), "job_name": f"harness {title}"}
        if "memory_gb" in self._options:
            said["mem"] = f"{self._options['memory_gb']:g}GB"
        more = {"requeue": True, **said.pop("additional_parameters", {})}
        return {**said, "additional_parameters": more, "signal_delay_s": _WARNED_S}

    def start(self, environment: Mapping[str, str]) -> None:
        pass

    def close(self) -> None:
        pass

    def _minutes(self, minutes: float) -> int:
        return int(self._options.get("time") or minutes) or 1


@dataclass(frozen=True)
class _SlurmJob:
    submitted: Any

    @property
    def job(self) -> str:
        return str(self.submitted.job_id)

    def lost(self) -> bool:
        return bool(self.submitted.done())

    def said(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            return self.submitted.stderr() or ""
        return ""

    def cancel(self) -> None:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            self.submitted.cancel()


class SlurmLauncher(PlacedLauncher):
    def is_gone(self, job: str) -> bool:
        if not job:
            return True
        said = _asked("sacct", "-n", "-X", "-P", "-o", "State", "-j", job)
        if said.startswith(_OVER_OR_AGAIN):
            # With its headline, which a queue that could not be asked has not.
            queue = _asked("squeue", "--me", "--federation", "-o", "%A").split()
            return bool(queue) and job not in queue
        return bool(said) and said.startswith(_OVER)

    def end_job(self, job: str) -> None:
        if job:
            _asked("scancel", job)


def _asked(*words: str) -> str:
    """What a program of Slurm says; empty where there is none or it fails."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=_COMMAND_S,
            check=False,
        )
        return done.stdout.strip()
    return ""


@contextlib.contextmanager
def _only(environment: Mapping[str, str]) -> Iterator[None]:
    """A job gets the environment of who submits it: no key of ours goes to another machine."""
    before = dict(os.environ)
    kept = {name: before[name] for name in ("PATH", *OURS) if name in before}
    slurm = {name: value for name, value in before.items() if name.startswith("SLURM_CONF")}
    os.environ.clear()
    os.environ.update({**environment, **kept, **slurm, "PYTHONSAFEPATH": "1"})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _submitit() -> Any:
    try:
        return importlib.import_module(SUBMITIT)
    except ImportError as error:
        raise MissingExtraError(
            "The launcher slurm needs submitit.",
            hint="`pip install 'experiment-harness[slurm]'`, from where the harness came.",
        ) from error
