"""The launcher of this machine: a process session for each command, its output copied into two
files that have a largest size."""

import contextlib
import errno
import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from harness.domain import variables
from harness.process import (
    Mark,
    end_group,
    end_tree,
    ended,
    identity,
    is_same_alive,
    signal_group,
    start,
)
from harness.runs.launchers.launcher import Handle, KilledProcesses, RunCommand

MOST_BYTES = 64 * 1024 * 1024
_NOTE = b"\n[harness: output beyond %d bytes was dropped]\n"


@dataclass(frozen=True, kw_only=True)
class _Started:
    process: subprocess.Popen[bytes]
    pumps: tuple["Pump", "Pump"]


class LocalLauncher:
    """A Launcher. Its handle is the identity of the command's first process."""

    def __init__(self) -> None:
        self._started: dict[int, _Started] = {}

    def submit(self, command: RunCommand) -> dict[str, Any]:
        # The order matters. The files are opened before the command starts, so that one that cannot
        # be opened, a link for instance, stops it from starting. A command whose output nobody can
        # take is ended before it can do anything that counts.
        with contextlib.ExitStack() as undo:
            pumps = (_opened(undo, command, "stdout"), _opened(undo, command, "stderr"))
            process = start(command.argv, cwd=command.cwd, environment=command.environment)
            undo.callback(_end, process)
            for pump, stream in zip(pumps, (process.stdout, process.stderr), strict=True):
                assert stream is not None
                _start(pump, stream)
            handle = identity(process.pid)
            undo.pop_all()
        self._started[process.pid] = _Started(process=process, pumps=pumps)
        return handle

    def poll(self, handle: Handle, *, seconds: float) -> int | None:
        process = self._started[handle["pid"]].process
        ended(process, seconds)
        return process.returncode

    def signal(self, handle: Handle, number: int) -> None:
        process = self._started[handle["pid"]].process
        # An ended process was waited for: its id may be another's by now.
        if process.poll() is None:
            signal_group(process, number)

    def kill(self, handle: Handle, token_sha256: str) -> KilledProcesses:
        own = self._started.get(handle.get("pid", 0))
        # A child of ours is waited for; one of a dead supervisor is not ours to wait for.
        if own is not None:
            end_group(own.process)
        count, left = end_tree(handle, run_mark(token_sha256))
        return KilledProcesses(count=count, left=left)

    def output(self, handle: Handle, *, seconds: float) -> None:
        for pump in self._started[handle["pid"]].pumps:
            pump.finish(seconds)

    def processes(self, handle: Handle) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            first = psutil.Process(handle["pid"])
            return [first, *first.children(recursive=True)]
        return []

    def lost(self, handle: Handle) -> bool:
        return handle["pid"] not in self._started and not is_same_alive(handle)


def run_mark(token_sha256: str) -> Mark:
    """Everything that a run started carries its link token, wherever it went since."""
    return Mark(variable=variables.TOKEN, value=token_sha256, hashed=True)


class Pump:
    """Copies one pipe into a file until the pipe's last writer is gone; beyond the limit it reads
    and drops."""

    # A pipe rather than the file itself: it bounds the file whatever the command does, and a
    # command that prints ends when its supervisor was killed.

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES, append: bool = False) -> None:
        """Raises OSError."""
        self._most = most_bytes
        how = os.O_APPEND | os.O_NOFOLLOW if append else os.O_EXCL
        self._target = os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o644)
        self._name = path.name
        self.cut = False
        self._thread: threading.Thread | None = None

    def start(self, stream: IO[bytes]) -> None:
        """The copying owns and closes both files. Raises RuntimeError without a free thread."""
        thread = threading.Thread(
            target=self._copy, args=(stream,), name=f"pump {self._name}", daemon=True
        )
        thread.start()
        self._thread = thread

    def close(self) -> None:
        """For a pump that did not start."""
        if self._thread is None:
            os.close(self._target)

    def finish(self, seconds: float) -> None:
        """Wait for the rest: a process that could not be killed may hold the pipe open for ever."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _copy(self, stream: IO[bytes]) -> None:
        written = os.fstat(self._target).st_size
        try:
            with stream:
                while block := os.read(stream.fileno(), 1 << 16):
                    kept = block[: self._most - written]
                    written += len(kept)
                    self._write(kept)
                    if len(kept) < len(block) and not self.cut:
                        self.cut = True
                        self._write(_NOTE % self._most)
        finally:
            os.close(self._target)

    def _write(self, data: bytes) -> None:
        # A full disk takes no more of it, and stops no training that prints.
        with contextlib.suppress(OSError):
            while data:
                data = data[os.write(self._target, data) :]


def _opened(undo: contextlib.ExitStack, command: RunCommand, stream: str) -> Pump:
    pump = Pump(getattr(command, stream), append=command.append)
    undo.callback(pump.close)
    return pump


def _start(pump: Pump, stream: IO[bytes]) -> None:
    try:
        pump.start(stream)
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, str(error), "a thread for its output") from error


def _end(process: subprocess.Popen[bytes]) -> None:
    signal_group(process, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
