"""What the detectors said about the open experiment's runs, told
to an interactive session once an alarm."""

from __future__ import annotations

import os
import stat

from harness.guard.policy.json_text import loads

from .session_receipts import lines_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .projects import HookedProject

ARTIFACT = "alarms"
LARGEST = 1 << 20
"""Bytes of one file that are read: the supervisor writes at most
a hundred lines."""
MOST = 5
"""Alarms in one message, the newest."""
_LONGEST = 300


def new_alarms(home: HookedProject, session: str) -> tuple[list[str], dict[str, int]]:
    """(a sentence for each alarm that the session was not told,
    run folder -> how many alarms it has by now)."""
    alarms = _alarms(home)
    if not alarms:
        return [], {}
    before = _counts_told(home, session)
    counts = {name: len(lines) for name, lines in alarms.items()}
    news = [
        _sentence(name, line)
        for name, lines in alarms.items()
        for line in lines[before.get(name, 0) :]
    ]
    return (news[-MOST:], counts) if news else ([], {})


def _counts_told(home: HookedProject, session: str) -> dict[str, int]:
    for line in lines_back(home, session):
        counts = line.get(ARTIFACT)
        if isinstance(counts, dict):
            return {name: count for name, count in counts.items() if isinstance(count, int)}
    return {}


def _alarms(home: HookedProject) -> dict[str, list[dict[str, Any]]]:
    """Run, e.g. "exp-0001/run-01" -> its alarms, oldest first."""
    current = home.snapshot.get("open_experiment")
    files = run_files(home, ARTIFACT) if current else []
    read = {run: lines_of(path) for run, path in files}
    return {f"{current['id']}/{run}": lines for run, lines in read.items() if current and lines}


def run_files(home: HookedProject, artifact: str) -> list[tuple[str, str]]:
    """(run, where its `artifact` is) of each run of the open
    experiment, by name; the file need not be there."""
    current = home.snapshot.get("open_experiment")
    globs = [
        item["glob"] for item in home.snapshot.get("artifacts", ()) if item["name"] == artifact
    ]
    if not current or not globs:
        return []
    above, _, below = globs[0].replace("*", current["id"], 1).partition("*")
    folder = os.path.join(home.root, above)
    try:
        runs = sorted(os.listdir(folder))
    except OSError:
        return []
    return [(run, os.path.join(folder, run) + below) for run in runs]


def lines_of(path: str) -> list[dict[str, Any]]:
    """The JSON objects of a file, one a line; a damaged line is
    passed over."""
    found = [_object(text) for text in _bytes(path).split(b"\n")]
    return [value for value in found if value is not None]


def object_of(path: str) -> dict[str, Any]:
    """The one JSON object of a file; empty where there is none
    that can be read."""
    return _object(_bytes(path)) or {}


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        value = loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _bytes(path: str) -> bytes:
    """Of a regular file only: training can write there, and put
    a pipe or a link in its place."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return b""
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return os.read(descriptor, LARGEST) if is_file else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _sentence(name: str, alarm: dict[str, Any]) -> str:
    severity, code, row, message = (
        _short(alarm.get(key)) for key in ("severity", "code", "row", "message")
    )
    sentence = f"harness: {name} raised {severity} {code} at row {row}: {message}."
    if alarm.get("recovered") or severity == "note":
        return sentence
    tries = alarm.get("try")
    advice = " ".join(_short(step) for step in tries[:3]) if isinstance(tries, list) else ""
    return f"{sentence} {f'Try: {advice} ' if advice else ''}{due(name)}"


def due(name: str) -> str:
    """What an open alarm asks of the session."""
    return (
        f"Let the agent training-checker explain {name} (call it training-<model>-checker): without"
        " a diagnosis that names each open alarm, no gate passes the experiment."
    )


def _short(value: object) -> str:
    # Here, so that hooks without an alarm to tell do not wait for it.
    from harness.domain.plain_text import inline

    return inline(str(value), _LONGEST)
