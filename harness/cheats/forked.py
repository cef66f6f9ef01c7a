"""`harness WORDS` in a process of its own, as a person starts it, that is a copy of this one: it
does not load the same package anew for each of a thousand commands.

Of this process it keeps what was loaded and what is known of the machine, such as which sandboxes
confine; not its environment, folder, streams or open files.
"""

import importlib
import io
import os
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from harness.sandbox.select import available

_COMMANDS = ("main", "train", "evaluate", "status", "watch", "experiment")
_MOST_OPEN = 4096
AVAILABLE = sys.platform == "linux"
"""Elsewhere a copy of a process may not use what the system's libraries hold."""


def load() -> None:
    """What the commands of the lab import, by name, for the lab stands below the command line; and
    which sandboxes confine."""
    for name in _COMMANDS:
        importlib.import_module(f"harness.cli.{name}")
    available()


def run(
    words: Sequence[str], *, cwd: Path, environment: Mapping[str, str], timeout_s: float
) -> "subprocess.CompletedProcess[str]":
    """Run to its end or limit; its process group ends with the limit."""
    load()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if not child:
            _become(words, cwd, environment, (out, err))
        code = _ended(child, timeout_s)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
    return subprocess.CompletedProcess(["harness", *words], code, *texts)


def _ended(child: int, timeout_s: float) -> int:
    """Its exit status; negative for a signal."""
    waiting = os.pidfd_open(child)
    try:
        if not select.select([waiting], [], [], timeout_s)[0]:
            os.killpg(child, signal.SIGKILL)
    finally:
        os.close(waiting)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _become(
    words: Sequence[str], cwd: Path, environment: Mapping[str, str], streams: Sequence[BinaryIO]
) -> None:
    """Does not return, whatever is raised: nothing of it may go on in the lab's own code."""
    code = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for number, source in enumerate((null, *(stream.fileno() for stream in streams))):
            os.dup2(source, number)
        os.closerange(3, _MOST_OPEN)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(os.fdopen(number, "wb", closefd=False), "utf-8", line_buffering=True)
            for number in (1, 2)
        )
        code = _started(words, cwd, environment)
        sys.stdout.flush()
    finally:
        os._exit(code)


def _started(words: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> int:
    try:
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None  # it was chosen by the other environment
        sys.argv = ["harness", *words]
        return _called()
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()


def _called() -> int:
    main = importlib.import_module("harness.cli.main").main
    try:
        main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0
