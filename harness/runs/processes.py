"""The processes of a run: known by the identity of the first one and by the run's link token."""

import subprocess

import psutil

from harness.domain import variables
from harness.domain.records import Run
from harness.process import Mark, end_group, end_tree, is_same_alive


def is_alive(run: Run) -> bool:
    """Whether the run's process, as it was started, still runs."""
    return is_same_alive({"pid": run.pid, "boot": run.boot, "started": run.started})


def marked(token_sha256: str) -> list[psutil.Process]:
    """Living processes whose environment carries the run's link token."""
    return _mark(token_sha256).processes()


def end_process(process: subprocess.Popen[bytes], token_sha256: str, *, grace: float) -> int:
    """TERM to the process' group, KILL after `grace` seconds; then KILL all that carries the run's
    token. Returns how many processes are left in spite of that."""
    end_group(process, grace=grace)
    return _mark(token_sha256).kill_all()


def end_everything(run: Run) -> tuple[int, int]:
    """End what is left of a run whose supervisor is gone: (how many processes were found, how many
    are still there)."""
    root = {"pid": run.pid, "boot": run.boot, "started": run.started}
    return end_tree(root, _mark(run.token))


def _mark(token_sha256: str) -> Mark:
    return Mark(variable=variables.TOKEN, value=token_sha256, hashed=True)
