"""`harness demo`: the whole workflow on MNIST-1D, with agents that a scenario plays."""

import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.artifacts.git import git_program, run_git
from harness.demo.data import require_train_extra, write_tables
from harness.demo.report import report
from harness.domain.grade import PERSON, Caller
from harness.domain.launch_options import SLURM
from harness.domain.statuses import SandboxKind
from harness.driver.loop_runner import open_gateway, run_loop
from harness.errors import UsageError
from harness.files import atomic_write
from harness.ledger.project import open_project
from harness.loop.steps import StopReason
from harness.plans.approval import approve_plan
from harness.plans.scaffold import scaffold
from harness.runs.launchers.launcher import launching
from harness.sandbox.select import choose
from harness.settings import CONFIG

CONTENT = Path(__file__).resolve().parent / "content"
SCENARIO = CONTENT / "scenario.yaml"
BY = "human:demo"
_IGNORED = "data/\nresults.json\n__pycache__/\n"
_IDENTITY = ("-c", "user.name=harness demo", "-c", "user.email=demo@localhost")

OnProgress = Callable[[Mapping[str, Any]], None]


def free_directory(wanted: Path) -> Path:
    """`wanted`, or the first of `wanted`-2, `wanted`-3, ... that does not exist yet."""
    number, free = 1, wanted
    while free.exists():
        number += 1
        free = wanted.with_name(f"{wanted.name}-{number}")
    return free


def run_demo(
    directory: Path,
    *,
    sandbox: str | None,
    seed: int | None,
    environment: Mapping[str, str],
    caller: Caller = PERSON,
    launcher: str | None = None,
    on_progress: OnProgress = lambda _event: None,
) -> dict[str, Any]:
    """Make a project in `directory`, run its loop and report the results.

    `sandbox`: a kind; None or "auto" is the strongest that works. `seed` draws the held-out rows;
    None draws a fresh seed that is stored nowhere. Returns {project, target_hit, reason, detail,
    experiments[], seconds, text}. Raises MissingExtraError without the `train` extra, UsageError
    when `directory` is not empty.
    """
    started = time.monotonic()
    require_train_extra()
    root = prepare(directory, seed=seed, environment=environment, on_progress=on_progress)
    if launcher is not None:
        allow(root, launcher, on_progress)
    chosen = choose(None if sandbox in (None, "auto") else SandboxKind(sandbox), required=False)
    with open_project(root, environment, caller=caller) as project:
        plan = approve_plan(project, root / "plan.md", by=BY)
        _say(
            on_progress,
            f"approved {plan.path} version {plan.version}; held-out rows moved to the vault",
        )
        _say(
            on_progress,
            f"a scenario plays the agents through the real Claude Code CLI; sandbox: {chosen.kind}",
        )
        gateway = open_gateway(project, plan, environment, scenario=SCENARIO)
        with launching(project, launcher) as placing:
            ended = run_loop(placing, gateway, chosen, on_progress=on_progress)
        summary = report(project, ended, seconds=time.monotonic() - started)
    return {**summary, "target_hit": ended.reason == StopReason.TARGET}


def allow(root: Path, launcher: str, on_progress: OnProgress) -> None:
    """The launcher's table in config.toml, as a person would write it."""
    lines = [f"[launchers.{launcher}]"]
    if launcher == SLURM and shutil.which("sbatch") is None:
        lines.append('cluster = "local"')
        _say(on_progress, "no sbatch is here: submitit runs the jobs on this machine")
    with (root / CONFIG).open("a", encoding="utf-8") as config:
        config.write("\n" + "\n".join(lines) + "\n")


def prepare(
    directory: Path, *, seed: int | None, environment: Mapping[str, str], on_progress: OnProgress
) -> Path:
    """Make the project as a person would: plan, data and, if git is there, a repository."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(
            f"{directory} is not an empty folder; the demo creates a new project.",
            hint="Name a new folder: `harness demo DIR`.",
            code="directory_not_empty",
        )
    directory.mkdir(parents=True, exist_ok=True)
    root = directory.resolve()
    _say(on_progress, f"new project in {root}")
    shutil.copyfile(CONTENT / "plan.md", root / "plan.md")
    atomic_write(root / ".gitignore", _IGNORED)
    scaffold(root)
    held_out_seed = int.from_bytes(os.urandom(4), "big") if seed is None else seed
    write_tables(root / "data", held_out_seed=held_out_seed, environment=environment)
    _say(on_progress, "drew MNIST-1D: 4,000 training, 1,000 validation and 1,000 held-out rows")
    if git_program() is not None:
        run_git(root, "init", "--quiet")
        run_git(root, "add", "--all")
        run_git(
            root,
            *_IDENTITY,
            "commit",
            "--quiet",
            "--message",
            "A plan and its data, before the first experiment",
        )
    return root


def _say(on_progress: OnProgress, text: str) -> None:
    on_progress({"event": "demo", "text": text})
