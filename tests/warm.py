"""The `harness` command in a process of its own that need not import it: forked from one that did
so already.

The start of Python and the imports are most of what a short verb takes, and the same in every call.
A warm call has the words, folder, environment, umask, terminal, pipes and exit code that a call of `python
-m harness` has; that this command itself starts is proved wherever a test or the harness starts it
cold.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.cli.main import COMMANDS, main
from harness.guard import judge_files
from harness.sandbox.select import available
from tests.once import found_once

ROOT = Path(__file__).parents[1]
_MOST = 1 << 20
"""Bytes of one request."""
_LONELY = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "LANG": "C.UTF-8"}
"""A process that forks must have no threads; numpy would start some."""


class Warm:
    """The server, started at the first call and ended with this process. One call at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        self._once = tempfile.TemporaryDirectory()
        command = [sys.executable, "-m", "tests.warm", str(theirs.fileno()), self._once.name]
        with theirs:
            self._server = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**kept, **_LONELY},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._socket, self._one = ours, threading.Lock()
        atexit.register(self._end)

    def run(
        self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float
    ) -> "subprocess.CompletedProcess[str]":
        request = {"words": list(words), "cwd": str(cwd), "env": dict(env), "umask": umask()}
        keyboard, terminal = pty.openpty()
        with (
            contextlib.ExitStack() as stack,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            stack.callback(os.close, keyboard)
            stack.callback(os.close, terminal)
            code = self._ask(request, [terminal, out.fileno(), err.fileno()], timeout)
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read().decode("utf-8").replace("\r\n", "\n"))
        return subprocess.CompletedProcess(["harness", *words], code, *texts)

    def _ask(self, request: Mapping[str, Any], streams: Sequence[int], timeout: float) -> int:
        with self._one:
            self._socket.settimeout(240)  # its first answer waits for all imports
            try:
                socket.send_fds(self._socket, [json.dumps(request).encode()], streams)
            except (BrokenPipeError, ConnectionResetError):
                raise self._ended(request) from None
            pid = self._answer(request)
            self._socket.settimeout(timeout)
            try:
                return self._answer(request)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._socket.settimeout(240)  # its first answer waits for all imports
                self._answer(request)
                raise subprocess.TimeoutExpired(list(request["words"]), timeout) from None

    def _answer(self, request: Mapping[str, Any]) -> int:
        try:
            said = self._socket.recv(100)
        except ConnectionResetError:
            said = b""
        if not said:
            raise self._ended(request)
        return int(said)

    def _ended(self, request: Mapping[str, Any]) -> RuntimeError:
        """The server is gone, whoever ended it: what the next call needs is another one."""
        if self in _warm:
            _warm.remove(self)
        code = self._server.wait(timeout=60)
        return RuntimeError(
            f"The warm server of `harness` ended with exit code {code} while it was asked for"
            f" {request['words']}; its stderr is this process's. The next call starts another one."
        )

    def _end(self) -> None:
        self._socket.close()
        self._server.wait(timeout=60)
        self._once.cleanup()


_warm: list[Warm] = []


def run_warm(
    words: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float = 120.0
) -> "subprocess.CompletedProcess[str]":
    """Run `harness` with `words` and a terminal as stdin; nobody types. stdout and stderr are kept
    apart."""
    if not _warm:
        _warm.append(Warm())
    return _warm[0].run(words, cwd=cwd, env=env, timeout=timeout)


def umask() -> int:
    """The mask of this process; it can be read by setting it only."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def serve(asked: socket.socket) -> list[str] | None:
    """Answer calls, each with a fork. Returns their words in the forks, and None here, where nobody
    asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        text, streams, _flags, _address = socket.recv_fds(asked, _MOST, 3)
        if not text:
            return None
        request = json.loads(text)
        pid = os.fork()
        if pid == 0:
            asked.close()
            return become(request, streams)
        for stream in streams:
            os.close(stream)
        asked.send(str(pid).encode())
        _pid, status = os.waitpid(pid, 0)
        asked.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(request: Mapping[str, Any], streams: Sequence[int]) -> list[str]:
    """Make this process the one that is asked for."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.path[0] = request["cwd"]
    words: list[str] = request["words"]
    sys.argv = ["harness", *words]
    return words


if __name__ == "__main__":
    for target in COMMANDS.values():
        importlib.import_module(target.partition(":")[0])
    # What a process finds out once, the forks need not: which sandboxes work, and what judges.
    available()
    with found_once(Path(sys.argv[2])):
        with tempfile.TemporaryDirectory() as once:
            judge_files.judge_files(Path(once) / "seen.json")
        gc.collect()
        gc.freeze()
        calls = socket.socket(fileno=int(sys.argv[1]))
        given = serve(calls)
        if given is not None:
            main(given)
