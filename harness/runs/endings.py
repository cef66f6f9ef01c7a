"""From how a command ended to how its run is closed, with a reason that a person can act on; and
the signals that end a supervisor: taken once, and never while a run is ended or closed."""

import contextlib
import os
import re
import signal
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.artifacts.content import open_regular
from harness.artifacts.resources import Summary
from harness.artifacts.resume_check import ResumeCheck
from harness.detectors.alarm import Alarm
from harness.domain.findings import ABSENT, BYPASSED, Finding
from harness.domain.plain_text import plain
from harness.domain.records import Run
from harness.domain.statuses import RunStatus
from harness.errors import UsageError
from harness.gates.findings import finding
from harness.runs.run_tail import RunRows, stopped

_TAIL_BYTES = 65_536
_MOST_CHARACTERS = 400
_RANK = re.compile(r"\[rank\d+\]:\s*")
_ERROR = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)\b.*\Z")
_OF_LAUNCHER = re.compile(
    r"[\w.]*(?:ChildFailedError|CalledProcessError|ProcessRaisedException|ProcessExitedException)\b"
)
"""What torchrun, accelerate and spawn raise when one of their processes failed: it says which."""
_OF_PEERS = re.compile(
    r"Connection (?:closed|reset) by peer|remote (?:worker|process) (?:crash|exit)"
    r"|(?:NCCL communicator was aborted|watchdog thread terminated)|DistNetworkError"
)
"""What a process says when another one, to which it spoke, is gone: the other's error is why."""
_EXIT_CODE = re.compile(r"exitcode\s*:\s*(-\d+)\b")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*\Z")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_NOT_FOUND = ("not found", "cannot be started", "No such file or directory")
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a run ended, before its files are collected."""

    status: RunStatus
    reason: str
    exit_code: int | None = None
    seconds: float | None = None
    findings: list[Finding] = field(default_factory=list)
    resources: Summary = field(default_factory=dict)
    """What it used of its machine."""


def by_itself(run: Run, code: int, rows: RunRows, stderr: list[str]) -> Ending:
    """The ending of a command that the harness did not end; `stderr` are its last lines there."""
    name = f"{run.experiment}/{run.id}"
    # A crash is reported as a crash, also when it came before the first row.
    if code != 0:
        return Ending(status=RunStatus.FAILED, reason=explain(code, stderr))
    if not rows.seen:
        what = f"ended with {rows.foreign} rows of something else and" if rows.foreign else "ended"
        problem = bypassed(name, what)
        return Ending(status=RunStatus.FAILED, reason=problem.message, findings=[problem])
    if rows.end is not None and rows.end.get("status") != "completed":
        reason = f"the training said that it failed: {rows.end.get('error') or 'no reason given'}"
        return Ending(status=RunStatus.FAILED, reason=reason)
    return Ending(
        status=RunStatus.COMPLETED,
        reason="exit code 0",
        findings=[] if rows.end else [_no_end(name)],
    )


def never_started(error: Exception) -> Ending:
    why = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else str(error)
    return Ending(status=RunStatus.FAILED, reason=f"never started: {why}")


def cancelled() -> Ending:
    return Ending(status=RunStatus.CANCELLED, reason="it was stopped by a person or a signal")


def cut_off(what: str) -> Ending:
    """By an engine that took its node, or lost it: nobody stopped it, and no outcome is known."""
    return Ending(status=RunStatus.LOST, reason=f"{what}; the run was ended with it")


def lost_at_launcher() -> Ending:
    return Ending(status=RunStatus.LOST, reason="its launcher does not know it any more")


def at_limit(reason: str, findings: Iterable[Finding] = ()) -> Ending:
    return Ending(status=RunStatus.KILLED, reason=reason, findings=list(findings))


def by_alarm(run: Run, fatal: Alarm) -> Ending:
    reason = f"stopped by the alarm {fatal.code} at row {fatal.row}: {fatal.message}"
    return at_limit(reason, [stopped(run, fatal)])


def _no_end(name: str) -> Finding:
    return Finding(
        "run_end_missing",
        f"{name} ended with exit code 0, but its metrics have no end row.",
        "Call log.end() last, or use the logger as a context manager.",
        {"run": name},
    )


def bypassed(run: str, what: str) -> Finding:
    """The finding of a run without a row of its own."""
    message = (
        f"The run logger was bypassed: {run} {what} without one row of its own in metrics.jsonl."
    )
    return finding(BYPASSED, message, run=run)


def leftovers(run: Run, left: int) -> list[Finding]:
    """The finding of `left` processes that could not be killed."""
    if not left:
        return []
    return [
        Finding(
            "processes_left",
            f"{left} processes of {run.experiment}/{run.id} could not be killed.",
            "Look for them with `ps`; the machine may have to be restarted.",
            {"run": f"{run.experiment}/{run.id}"},
        )
    ]


def not_exact(run: str, resumes: ResumeCheck) -> list[Finding]:
    if resumes.newest is None:
        return []
    message = f"{run} went on after a stop, but not exactly: {resumes.newest}."
    return [finding("resume_not_exact", message, run=run, resumes=resumes.count)]


def findings_of(run: Run, program: str, stderr: str) -> list[Finding]:
    """The findings of an ended run of `program`, led by its reason when it did not complete;
    `stderr` is the log's path."""
    findings = list(run.findings)
    if run.status is RunStatus.COMPLETED or BYPASSED in {finding.code for finding in findings}:
        return findings
    name = f"{run.experiment}/{run.id}"
    message = f"{name} is {run.status}: {run.reason}."
    hint = missing_package(run.reason, program) or f"See {stderr}, then train again."
    if run.never_started:
        hint = "Correct what kept it from starting: this run counts for no seed."
    hint = next((found.hint for found in findings if found.code == ABSENT), hint)
    return [Finding("run_not_completed", message, hint, {"run": name}), *findings]


def last_lines(path: Path) -> list[str]:
    """The last non-empty lines of a log; a progress bar's carriage returns end lines too."""
    try:
        with open_regular(path, follow=False) as stream:
            # Only the end: a log may have any size, and a cut first character is replaced.
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _TAIL_BYTES))
            text = plain(stream.read().decode("utf-8", "replace"))
    except UsageError:
        return []
    return [line.strip() for line in text.split("\n") if line.strip()]


def explain(exit_code: int, lines: list[str]) -> str:
    """Why a command that the harness did not end failed; `lines` are the last of its stderr."""
    last = lines[-1] if lines else ""
    if exit_code in (126, 127) and (not last or any(words in last for words in _NOT_FOUND)):
        return _short(f"never started: {last or 'the command was not found'}")
    # subprocess reports signal n as -n; a shell, and front.py, as 128 + n.
    if why := _signalled(-exit_code if exit_code < 0 else exit_code - 128):
        return why
    said = [_RANK.sub("", line) for line in lines]
    errors = [line for line in said if _ERROR.match(line)]
    own = [line for line in errors if not _OF_LAUNCHER.match(line)]
    if not own and (killed := next(filter(None, map(_EXIT_CODE.search, reversed(said))), None)):
        return f"one of its processes was {_signalled(-int(killed[1])) or killed[0]}"
    if errors:
        first = [line for line in own if not _OF_PEERS.search(line)]
        return _short(f"crashed: {(first or own or errors)[-1]}")
    end = f"; stderr ends: {' | '.join(lines[-3:])}" if lines else ""
    return _short(f"exit code {exit_code}{end}")


def _signalled(number: int) -> str | None:
    if number == signal.SIGKILL:
        return (
            "killed by SIGKILL, which the harness did not send: perhaps the machine ran out of"
            " memory"
        )
    if 0 < number < signal.NSIG:
        return f"ended by {signal.Signals(number).name}, which the harness did not send"
    return None


def missing_package(reason: str, program: str) -> str | None:
    """The hint when `reason`, as `explain` gave it, is a module that `program` lacks."""
    match = _NO_MODULE.search(reason)
    if match is None:
        return None
    name = match[1].partition(".")[0]
    what = "this package, experiment-harness," if name == "harness" else name
    if not _PYTHON.match(os.path.basename(program)):
        return (
            f"{program} ran this, and its Python has no module {name}. Set `interpreter` in"
            f" .harness/config.toml to a Python that has {what.rstrip(',')} and {program}: a bare"
            " name after `--` is looked up in its environment first; then train again."
        )
    return (
        f"{program} ran this and has no module {name}: install {what} there (`{program} -m pip"
        " install ...`), or set `interpreter` in .harness/config.toml to the Python that has it;"
        " then train again."
    )


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 3] + "..."


class Interrupts:
    """The first signal raises KeyboardInterrupt, at once or when the block that holds it ends;
    later ones are ignored, since the first is being answered."""

    def __init__(self) -> None:
        self._held = self._waiting = self._raised = False

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Inside, these signals come here; one that the process ignores stays ignored."""
        # Python runs signal handlers, and lets one be set, only in the main thread.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        caught = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
        for number in caught:
            signal.signal(number, self._take)
        try:
            yield
        finally:
            for number in caught:
                signal.signal(number, before[number])

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """What comes now is raised when the block has ended."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self._raise_waiting()

    @contextlib.contextmanager
    def heeded(self) -> Iterator[None]:
        """Inside `held`: what waits or comes now is raised here."""
        self._held = False
        try:
            self._raise_waiting()
            yield
        finally:
            self._held = True

    def _take(self, number: int, frame: object) -> None:
        # Runs between any two byte codes of the main thread, also inside the methods above: it sets
        # a flag, and raises only where nothing is held.
        self._waiting = not self._raised
        if not self._held:
            self._raise_waiting()

    def _raise_waiting(self) -> None:
        if self._waiting:
            self._waiting, self._raised = False, True
            raise KeyboardInterrupt
