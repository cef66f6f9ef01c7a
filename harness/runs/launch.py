"""Start one registered run in its sandbox, and watch it until it ends or hits a limit."""

import contextlib
import errno
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from harness.artifacts.metrics_file import place
from harness.clock import Clock
from harness.detectors.alarm import Alarm
from harness.runs.alarms import RunAlarms
from harness.runs.output import Pump
from harness.runs.run_tail import RunTail

_POLL_SECONDS = 0.1
_EVENT_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Seconds."""

    run: float
    total: float
    """What is left of the plan's total_minutes."""
    silent: float = 60.0
    """How long a run may go on without a row of its own."""
    grace: float = 10.0
    """Between TERM and KILL."""


class How(StrEnum):
    EXITED = "exited"
    RUN_LIMIT = "run_limit"
    TOTAL_LIMIT = "total_limit"
    BYPASSED = "bypassed"
    ALARM = "alarm"


@dataclass(frozen=True, kw_only=True)
class Launched:
    process: subprocess.Popen[bytes]
    pumps: tuple[Pump, Pump]

    def ended(self, seconds: float) -> bool:
        """Whether it ends within so many seconds."""
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def finish_output(self, seconds: float = 5.0) -> None:
        for pump in self.pumps:
            pump.finish(seconds)


def launch(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    stdout: Path,
    stderr: Path,
    further: bool,
) -> Launched:
    """Start `command` in a session of its own, its output going to two new files, with `further`
    behind what they hold.

    Raises OSError; then nothing runs.
    """
    with contextlib.ExitStack() as undo:
        pumps = (_opened(undo, stdout, further=further), _opened(undo, stderr, further=further))
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        undo.callback(_end, process)
        for pump, stream in zip(pumps, (process.stdout, process.stderr), strict=True):
            assert stream is not None
            _start(pump, stream)
        undo.pop_all()
    return Launched(process=process, pumps=pumps)


def _opened(undo: contextlib.ExitStack, path: Path, *, further: bool) -> Pump:
    pump = Pump(path, further=further)
    undo.callback(pump.close)
    return pump


def _start(pump: Pump, stream: IO[bytes]) -> None:
    try:
        pump.start(stream)
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, str(error), "a thread for its output") from error


def _end(process: subprocess.Popen[bytes]) -> None:
    """A command whose output nobody can take: it ends before it could do anything that counts."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def watch(
    launched: Launched,
    run_tail: RunTail,
    alarms: RunAlarms,
    limits: Limits,
    clock: Clock,
    on_event: Callable[[dict[str, Any]], None],
) -> How:
    """How the watching ended. Alarms are recorded as their rows come. The process is not ended
    here."""
    rows, begun, told = run_tail.rows, clock.monotonic(), -_EVENT_SECONDS
    latest: dict[str, Any] | None = None
    while True:
        try:
            launched.process.wait(timeout=_POLL_SECONDS)
            return How.EXITED
        except subprocess.TimeoutExpired:
            pass
        new = run_tail.look()
        for alarm in alarms.take(new):
            on_event(_alarm(rows.run, alarm))
        epochs = [row for row in new if row.get("event") == "epoch"]
        latest = epochs[-1] if epochs else latest
        elapsed = clock.monotonic() - begun
        if latest is not None and elapsed - told >= _EVENT_SECONDS:
            on_event(_progress(rows.run, latest, rows.total_epochs))
            latest, told = None, elapsed
        if alarms.fatal() is not None:
            return How.ALARM
        if elapsed > limits.run or elapsed > limits.total:
            return How.RUN_LIMIT if limits.run <= limits.total else How.TOTAL_LIMIT
        if not rows.seen and elapsed > limits.silent:
            return How.BYPASSED


def _alarm(run: str, alarm: Alarm) -> dict[str, Any]:
    text = f"{run}  {alarm.severity} {alarm.code} at row {alarm.row}: {alarm.message}"
    return {"kind": "alarm", "run": run, "alarm": alarm.plain(), "text": text}


def _progress(run: str, row: Mapping[str, Any], total: int | None) -> dict[str, Any]:
    epoch = place(dict(row))
    metrics = row.get("metrics")
    shown = metrics if isinstance(metrics, dict) else {}
    numbers = "  ".join(
        f"{key} {value:.4g}"
        for key, value in list(shown.items())[:4]
        if isinstance(value, float | int)
    )
    of = f"/{total - 1}" if total is not None and total > 1 else ""
    text = f"{run}  epoch {epoch}{of}  {numbers}"
    return {"kind": "epoch", "run": run, "epoch": epoch, "metrics": shown, "text": text}
