"""The supervisor of an experiment's runs, as the driver sees it: a process of its own that outlives
the driver."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain.commands import for_ourselves
from harness.domain.records import Run
from harness.domain.statuses import FINAL_RUNS, SandboxKind
from harness.ledger.project import Project
from harness.process import is_same_alive, start
from harness.runs.lock import try_supervising

_PACKAGE = Path(__file__).resolve().parents[1]


def is_supervised(project: Project, run: Run) -> bool:
    """Whether the process that watches an open run lives. One that has not started yet is known by
    the lock."""
    if run.supervisor:
        return is_same_alive(run.supervisor)
    return is_held(project, run.experiment)


def is_going(project: Project, experiment: str) -> bool:
    """Whether a run of the experiment is open and watched."""
    runs = project.ledger.runs(experiment)
    return any(run.status not in FINAL_RUNS and is_supervised(project, run) for run in runs)


def is_held(project: Project, experiment: str) -> bool:
    """Whether some living process supervises the experiment, also between two runs.

    It asks by taking the lock for a moment: only for a supervisor that was not started just now.
    """
    with try_supervising(project.layout, experiment) as free:
        return not free


@dataclass(frozen=True, kw_only=True)
class Supervisor:
    """A supervisor that this driver started. What it answers and what it says as errors lie in the
    state directory."""

    process: subprocess.Popen[bytes]
    answer: Path

    @classmethod
    def start(
        cls,
        project: Project,
        experiment: str,
        words: Sequence[str] | None,
        *,
        sandbox: SandboxKind,
        session: str | None,
        verb: Sequence[str] = ("train",),
    ) -> "Supervisor":
        """Start `harness train`, or another verb that supervises, in a process session of its own;
        return at once.

        It does not end with the driver: its runs go on, and the next loop waits for them.
        """
        folder = project.layout.state / "supervisors"
        folder.mkdir(parents=True, exist_ok=True)
        answer = folder / f"{experiment}-{secrets.token_hex(4)}.json"
        command = [
            sys.executable,
            "-m",
            "harness",
            *verb,
            experiment,
            "--project",
            str(project.layout.root),
        ]
        command += ["--json", "--sandbox", sandbox.value]
        command += ["--session", session] if session else []
        command += ["--", *words] if words else []
        with answer.open("wb") as stdout, answer.with_suffix(".log").open("wb") as stderr:
            ours = {"PYTHONPATH": str(_PACKAGE.parent), "PYTHONSAFEPATH": "1"}
            process = start(
                command,
                cwd=project.layout.root,
                environment={**for_ourselves(os.environ), **ours},
                stdout=stdout,
                stderr=stderr,
            )
        return cls(process=process, answer=answer)

    def ended(self) -> bool:
        return self.process.poll() is not None

    def killed(self) -> bool:
        """Ended by a signal, not by itself."""
        code = self.process.poll()
        return code is not None and code < 0

    def problem(self) -> dict[str, Any] | None:
        """{code, message, hint} when it ended with an error of its own instead of runs; else
        None."""
        if not self.ended():
            return None
        try:
            said = json.loads(self.answer.read_text("utf-8"))
        except (OSError, ValueError):
            last = (
                self.answer.with_suffix(".log")
                .read_text("utf-8", errors="replace")
                .strip()
                .splitlines()
            )
            words = last[-1] if last else f"exit code {self.process.returncode}"
            return {
                "code": "supervisor_failed",
                "message": f"The supervisor ended without an answer: {words}.",
                "hint": (
                    "Call start_run again; if it happens twice, a person has to look at the"
                    " harness."
                ),
            }
        found = said.get("error")
        return found if isinstance(found, dict) else None
