"""Chooses the Python that runs the hooks, by letting each candidate run the guard."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.contract.installation import SETTINGS, VENDORED
from harness.errors import RefusedError
from harness.guard.hooks.table import BY_NAME, ISOLATED, PROGRAM
from harness.ledger.project import open_project
from harness.rendering.policy_snapshot import write_policy_snapshot
from harness.rendering.vendored_hooks import vendored_files
from harness.settings import create_config

GUARD = BY_NAME["PreToolUse"]
DENIED = 2
_ANSWER_S = 10.0
_SYSTEM = ("/usr/bin/python3", "/usr/local/bin/python3", "/opt/homebrew/bin/python3")


@dataclass(frozen=True, kw_only=True)
class Chosen:
    interpreter: str
    rejected: tuple[tuple[str, str], ...]
    """(candidate, why not), in the order in which they were tried."""


def candidates(first: str | None = None) -> tuple[str, ...]:
    """The one chosen before, the system's, then the one below the harness's own environment."""
    base = str(getattr(sys, "_base_executable", sys.executable))
    return tuple(dict.fromkeys([*([first] if first else []), *_SYSTEM, base]))


def choose(paths: Iterable[str]) -> Chosen:
    """The first of `paths` with which the guard denies and allows as it must.

    Raises RefusedError (no_interpreter) with the problem of each.
    """
    rejected: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory(prefix="harness-self-test-") as folder:
        root = _stage(Path(folder).resolve())
        for path in paths:
            why = stand_in(Path(path)) or _self_test(path, root)
            if not why:
                return Chosen(interpreter=path, rejected=tuple(rejected))
            rejected.append((path, why))
    reasons = "; ".join(f"{path} {why}" for path, why in rejected)
    raise RefusedError(
        f"No Python can run the hooks: {reasons}.",
        hint="Install the system's python3 (3.9 or newer), or use `harness init --hooks none`.",
        code="no_interpreter",
    )


def stand_in(path: Path) -> str:
    """Why `path` is no Python to rely on, without starting it; "" if it may be one."""
    # Hooks start in any folder and environment, for months: a shim, a wrapper or a virtual
    # environment works during `init` and fails later, and a failing guard blocks every call.
    if not path.is_absolute():
        return "is not an absolute path"
    if not path.is_file():
        return "does not exist"
    if not os.access(path, os.X_OK):
        return "may not be executed"
    real = path.resolve()
    if "shims" in path.parts or "shims" in real.parts:
        return "is a shim: its Python depends on the current folder and the environment"
    if real.name in ("uv", "uvx"):
        return "is uv, not a Python"
    with real.open("rb") as stream:
        if stream.read(2) == b"#!":
            return "is a script, not a Python"
    if (path.parent.parent / "pyvenv.cfg").is_file():
        return "belongs to a virtual environment, which may be deleted or replaced"
    return ""


def _stage(folder: Path) -> Path:
    """A temporary project with the vendored hooks and a policy."""
    root = folder / "project"
    create_config(root, name="self-test")
    with open_project(
        root, {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    ) as project:
        write_policy_snapshot(project)
    for name, data in vendored_files().items():
        (root / VENDORED / name).parent.mkdir(parents=True, exist_ok=True)
        (root / VENDORED / name).write_bytes(data)
    return root


def _self_test(interpreter: str, root: Path) -> str:
    # Both calls are needed: Python's own failures exit with 2 too, and look like a denial.
    command = [interpreter, *ISOLATED, str(root / VENDORED / PROGRAM), GUARD.name]
    for target, wanted, what in (
        (SETTINGS, DENIED, "does not deny"),
        ("notes.txt", 0, "does not allow"),
    ):
        call = {
            "hook_event_name": GUARD.name,
            "session_id": "self-test",
            "cwd": str(root),
            "tool_name": "Write",
            "tool_input": {"file_path": str(root / target), "content": "x"},
        }
        code, output = _answer(command, call, root)
        if code != wanted:
            return f"{what} a write to {target} when it runs the guard ({output})"
    return ""


def _answer(command: Sequence[str], call: dict[str, Any], root: Path) -> tuple[int | None, str]:
    """(exit code or None, its last line)."""
    environment = {
        "PATH": os.defpath,
        "HOME": str(root.parent),
        "XDG_STATE_HOME": str(root.parent / "state"),
        "CLAUDE_PROJECT_DIR": str(root),
    }
    try:
        done = subprocess.run(
            command,
            input=json.dumps(call),
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_ANSWER_S,
            check=False,
        )
    except OSError as error:
        return None, f"it cannot be started: {error.strerror}"
    except subprocess.TimeoutExpired:
        return None, f"no answer in {_ANSWER_S:g} s"
    last = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
    return done.returncode, f"exit {done.returncode}: {last[:200]}"
