"""Which process is which: identities that a reused process id cannot fake, and the end of all that
a run started."""

import contextlib
import functools
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from harness.domain import variables
from harness.domain.records import Run

_SAME_START_S = (
    2.0  # create times are derived from a boot time that the system's clock moves a little
)
_KILL_SECONDS = 10.0
_POLL_SECONDS = 0.02


@functools.cache
def boot_id() -> str:
    """A name of this boot of the machine: process ids mean nothing after the next one."""
    linux = Path("/proc/sys/kernel/random/boot_id")
    if linux.exists():
        return linux.read_text("ascii").strip()
    if sys.platform == "darwin":
        asked = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        if asked.returncode == 0 and asked.stdout.strip():
            return asked.stdout.strip()
    return f"booted-{int(psutil.boot_time())}"


def identity(pid: int | None = None) -> dict[str, Any]:
    """{pid, boot, started} of a process, by default of this one. Raises psutil.NoSuchProcess."""
    process = psutil.Process(pid)
    return {"pid": process.pid, "boot": boot_id(), "started": process.create_time()}


def is_same_alive(known: Mapping[str, Any]) -> bool:
    """Whether the process that had this identity still runs; a zombie does not."""
    return _process(known.get("pid"), known.get("boot"), known.get("started")) is not None


def is_alive(run: Run) -> bool:
    """Whether the run's process, as it was started, still runs."""
    return _process(run.pid, run.boot, run.started) is not None


def marked(token_sha256: str) -> list[psutil.Process]:
    """Living processes whose environment carries the run's link token, wherever they went since."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            token = process.environ().get(variables.TOKEN)
            ours = token is not None and hashlib.sha256(token.encode()).hexdigest() == token_sha256
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def end_process(process: subprocess.Popen[bytes], token_sha256: str, *, grace: float) -> int:
    """TERM to the process' group, KILL after `grace` seconds; then KILL all that carries the run's
    token.

    Does the same for a process that has ended already. Returns how many processes are left in spite
    of that.
    """
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=grace)
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()
    return _kill_marked(token_sha256)


def end_everything(run: Run, *, grace: float = 0.0) -> tuple[int, int]:
    """End what is left of a run whose supervisor is gone: (how many processes were found, how many
    are still there)."""
    root = _process(run.pid, run.boot, run.started)
    found = {process.pid: process for process in marked(run.token)}
    if root is not None:
        below = [root]
        with contextlib.suppress(psutil.Error):
            below += root.children(recursive=True)
        found |= {process.pid: process for process in below}
    if grace > 0 and root is not None:
        with contextlib.suppress(psutil.Error):
            root.terminate()
        psutil.wait_procs(list(found.values()), timeout=grace)
    for process in found.values():
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(list(found.values()), timeout=_KILL_SECONDS)
    return len(found), _kill_marked(run.token)


def _process(pid: int | None, boot: str | None, started: float | None) -> psutil.Process | None:
    if pid is None or started is None or boot != boot_id():
        return None
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        same = abs(process.create_time() - started) <= _SAME_START_S
        if same and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


def _kill_marked(token_sha256: str) -> int:
    """Again and again, since a process may start another while it is being killed."""
    deadline = time.monotonic() + _KILL_SECONDS
    while left := marked(token_sha256):
        if time.monotonic() > deadline:
            return len(left)
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(_POLL_SECONDS)
    return 0


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
