"""The supervisor of an experiment's runs: a separate process that outlives the driver."""

import json
import os
import secrets
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain.commands import for_supervisors
from harness.domain.records import Run
from harness.domain.statuses import FINAL_RUNS, SandboxKind
from harness.files import make_folder, owner_only
from harness.judge.identity import handed_on
from harness.ledger.project import Project
from harness.process import boot_id, harness_command, is_same_alive, start
from harness.runs import lock
from harness.runs.launchers.launcher import NAMES


def is_supervised(project: Project, run: Run) -> bool:
    """Whether the supervisor of an open run is alive; before it is recorded, and of one on another
    machine, the lock answers."""
    if run.supervisor and run.supervisor.get("boot") == boot_id():
        return is_same_alive(run.supervisor)
    return is_held(project, run.experiment)


def is_going(project: Project, experiment: str) -> bool:
    """Whether a run of the experiment is open and has a living supervisor."""
    runs = project.ledger.runs(experiment)
    return any(run.status not in FINAL_RUNS and is_supervised(project, run) for run in runs)


def is_held(project: Project, experiment: str) -> bool:
    """Whether some living process supervises the experiment, also between two runs.

    The question takes the lock for a moment, so do not ask it right after starting a supervisor.
    """
    return lock.is_held(project.layout, experiment)


def _launcher(project: Project, verb: Sequence[str]) -> list[str]:
    """Of a loop that was started with another one than config.toml names."""
    name = project.settings.launcher
    trains = verb[0] == "train" and not any(word.startswith("--from") for word in verb)
    return ["--launcher", name] if trains and name in NAMES else []


@dataclass(frozen=True, kw_only=True)
class Supervisor:
    """A supervisor that this driver started; it writes its answer to a file, stderr beside it."""

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
        slots: int = 1,
    ) -> "Supervisor":
        """Start `harness train`, or another `verb` that supervises, and return at once. Of the
        machine it gets one of `slots` equal parts. Raises RefusedError (session_over) for a tool
        whose session has ended."""
        folder = project.layout.state / "supervisors"
        make_folder(folder)
        answer = folder / f"{experiment}-{secrets.token_hex(4)}.json"
        command = harness_command(*verb, experiment, "--project", str(project.layout.root))
        command += ["--json", "--sandbox", sandbox.value]
        command += ["--session", session] if session else []
        command += ["--slots", str(slots)] if slots > 1 else []
        command += _launcher(project, verb)
        command += ["--", *words] if words else []
        known, descriptors = handed_on(os.environ)
        with (
            open(answer, "wb", opener=owner_only) as stdout,
            open(answer.with_suffix(".log"), "wb", opener=owner_only) as stderr,
        ):
            project.ledger.require_session()
            process = start(
                command,
                cwd=project.layout.root,
                environment={**for_supervisors(os.environ), **known},
                stdout=stdout,
                stderr=stderr,
                descriptors=descriptors,
            )
        return cls(process=process, answer=answer)

    def ended(self) -> bool:
        return self.process.poll() is not None

    def killed(self) -> bool:
        """Ended by a signal, not by itself."""
        code = self.process.poll()
        return code is not None and code < 0

    def problem(self) -> dict[str, Any] | None:
        """{code, message, hint} when it ended with an error instead of runs; else None."""
        if not self.ended():
            return None
        try:
            answer = json.loads(self.answer.read_text("utf-8"))
        except (OSError, ValueError):
            log = self.answer.with_suffix(".log").read_text("utf-8", errors="replace")
            lines = log.strip().splitlines()
            last = lines[-1] if lines else f"exit code {self.process.returncode}"
            return {
                "code": "supervisor_failed",
                "message": f"The supervisor ended without an answer: {last}.",
                "hint": "Try again; if it fails twice, a person must check the harness.",
            }
        problem = answer.get("error")
        return problem if isinstance(problem, dict) else None
