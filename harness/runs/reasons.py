"""Why a training command ended as it did, in one sentence a person can act on."""

import os
import re
import signal
from collections.abc import Iterable
from pathlib import Path

from harness.artifacts.content import open_regular
from harness.artifacts.metrics_file import Row
from harness.artifacts.metrics_notes import not_restored
from harness.domain.findings import BYPASSED, Finding
from harness.errors import UsageError
from harness.gates.findings import finding

_TAIL_BYTES = 8_192
_MOST_CHARACTERS = 400
_ERROR = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)\b.*\Z")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_NOT_FOUND = ("not found", "cannot be started", "No such file or directory")


def bypassed(run: str, what: str) -> Finding:
    """The finding of a run without a row of its own."""
    message = (
        f"The run logger was bypassed: {run} {what} without one row of its own in metrics.jsonl."
    )
    return finding(BYPASSED, message, run=run)


def last_lines(path: Path) -> list[str]:
    """The last lines of a log that are not empty; a progress bar's carriage returns end lines
    too."""
    try:
        with open_regular(path, follow=False) as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _TAIL_BYTES))
            text = stream.read().decode("utf-8", "replace")
    except UsageError:
        return []
    return [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]


def explain(exit_code: int, lines: list[str]) -> str:
    """Why a command that was not ended by the harness failed; `lines` are the last ones of its
    stderr."""
    last = lines[-1] if lines else ""
    if exit_code in (126, 127) and (not last or any(words in last for words in _NOT_FOUND)):
        return _short(f"never started: {last or 'the command was not found'}")
    number = -exit_code if exit_code < 0 else exit_code - 128
    if number == signal.SIGKILL:
        return (
            "killed by SIGKILL, which the harness did not send: perhaps the machine ran out of"
            " memory"
        )
    if 0 < number < signal.NSIG:
        return f"ended by {signal.Signals(number).name}, which the harness did not send"
    if error := next((line for line in reversed(lines) if _ERROR.match(line)), None):
        return _short(f"crashed: {error}")
    return _short(
        f"exit code {exit_code}" + (f"; stderr ends: {' | '.join(lines[-3:])}" if lines else "")
    )


def missing_package(reason: str, program: str) -> str | None:
    """The hint when `reason`, as `explain` gave it, is a module that `program` does not have; else
    None."""
    found = _NO_MODULE.search(reason)
    if found is None:
        return None
    name = found[1].partition(".")[0]
    what = "this package, experiment-harness," if name == "harness" else name
    return (
        f"{program} ran this and has no module {name}: install {what} there (`{program} -m pip"
        " install ...`), or set `interpreter` in .harness/config.toml to the Python that has it;"
        " then train again."
    )


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 3] + "..."


def not_exact(run: str, resumes: Iterable[Row]) -> list[Finding]:
    """What to say when an attempt went on without all that its checkpoint should have held."""
    parts = not_restored(resumes)
    if not parts:
        return []
    message = f"{run} went on after a stop without all that it had: {parts[-1]} not put back."
    return [finding("resume_not_exact", message, run=run, resumes=len(parts))]
