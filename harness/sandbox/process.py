"""Start a command behind front.py, collect its output, and see to it that nothing is left
running."""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import psutil

from harness.domain.sandbox import Completed
from harness.errors import SandboxError

OUTPUT_LIMIT = 1 << 20
GRACE_S = 2.0
MARKER = "HARNESS_SANDBOX_MARKER"
"""In the environment of everything that one `run` starts; the last means of finding it."""
PYTHON = os.path.realpath(sys.executable)
HERE = Path(__file__).resolve().parent


def program(name: str) -> list[str]:
    """How one of the self-contained programs beside this file is started."""
    return [PYTHON, "-I", "-S", str(HERE / name)]


def behind_front(
    argv: Sequence[str],
    *,
    grace: float = 10.0,
    memory: int | None = None,
    gateway: int | None = None,
) -> list[str]:
    """`argv` behind front.py, which explains the three settings."""
    return [
        *program("front.py"),
        json.dumps({"grace": grace, "memory": memory, "gateway": gateway}),
        *argv,
    ]


def run_process(
    argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], timeout_s: float
) -> Completed:
    """Run `argv`, which starts with front.py, to its end or the limit. Raises SandboxError when it
    cannot be started.

    The exit code is the command's, 128 + n after signal n. Output beyond 1 MiB a stream is read and
    dropped.
    """
    marker = secrets.token_hex(16)
    begun = time.monotonic()
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**environment, MARKER: marker},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxError(
            f"{argv[0]} cannot be started in {cwd}: {error}.", hint="Check that both exist."
        ) from error
    outputs = [bytearray(), bytearray()]
    pumps = [
        threading.Thread(target=_pump, args=(stream, kept), daemon=True)
        for stream, kept in zip((process.stdout, process.stderr), outputs, strict=True)
    ]
    for pump in pumps:
        pump.start()
    try:
        timed_out = _wait(process, timeout_s)
    finally:
        _end(process, marker)
    for pump in pumps:
        pump.join(timeout=5)
    code = process.returncode
    return Completed(
        exit_code=None if timed_out else code if code >= 0 else 128 - code,
        stdout=bytes(outputs[0]),
        stderr=bytes(outputs[1]),
        timed_out=timed_out,
        seconds=time.monotonic() - begun,
    )


def _pump(stream: IO[bytes] | None, kept: bytearray) -> None:
    assert stream is not None
    with stream:
        while block := os.read(stream.fileno(), 1 << 16):
            kept += block[: OUTPUT_LIMIT - len(kept)]


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """True when the limit came first; then TERM, and the guardian's KILL after the grace, are done
    with too."""
    try:
        process.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=GRACE_S + 12)
        return True
    return False


def _end(process: subprocess.Popen[bytes], marker: str) -> None:
    """Kill whatever is left: front and guardian when they hang, and all that carries the marker.

    The guardian has done this already unless the command killed it, which only `none` allows.
    """
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for _ in range(200):
        left = _marked(marker)
        if not left:
            return
        for other in left:
            with contextlib.suppress(psutil.Error):
                other.kill()
        time.sleep(0.02)


def _marked(marker: str) -> list[psutil.Process]:
    found = []
    for other in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if other.environ().get(MARKER) == marker and other.status() != psutil.STATUS_ZOMBIE:
                found.append(other)
    return found
