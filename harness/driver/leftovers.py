"""Find and end what a session started, also when the driver that started it is gone."""

import contextlib
import time

import psutil

from harness.artifacts.locate import Layout
from harness.domain.facts import SessionEnded
from harness.domain.records import Session
from harness.driver.environment import SESSION, SessionFolders, session_folders
from harness.errors import RefusedError
from harness.ledger.ledger import Ledger
from harness.ledger.spending import session_usd
from harness.process import Mark, identity, is_same_alive

TERM_SECONDS = 5.0
POLL_SECONDS = 0.05


def end_session_processes(
    folders: SessionFolders, session: str, *, grace: float = TERM_SECONDS
) -> int:
    """TERM to the process in front of the CLI, which passes it on; KILL to all that is left of the
    session.

    Processes are known by the session's name in their environment, so that a reused process id is
    never ours. Returns how many were found alive.
    """
    found = session_processes(session)
    front = _front(folders)
    if grace > 0 and front in {process.pid for process in found}:
        with contextlib.suppress(psutil.Error):
            psutil.Process(front).terminate()
        _until_gone(session, grace)
    _mark(session).kill_all(TERM_SECONDS)
    return len(found)


def session_processes(session: str) -> list[psutil.Process]:
    """Living processes that carry the session's name."""
    return _mark(session).processes()


def _mark(session: str) -> Mark:
    return Mark(variable=SESSION, value=session)


def close_cut_sessions(ledger: Ledger, layout: Layout) -> list[Session]:
    """Close every session whose driver is gone: end what is left of it, then record that it was
    cut.

    Raises RefusedError when the driver of an open session lives: one loop a project.
    """
    open_sessions = ledger.sessions(open_only=True)
    for session in open_sessions:
        if session.driver != identity() and is_same_alive(session.driver):
            raise RefusedError(
                f"Another loop is at work in this project: session {session.id}, process"
                f" {session.driver['pid']}.",
                hint="Wait for it to end, or end that process, then run `harness continue`.",
                code="loop_running",
            )
    for session in open_sessions:
        ended = end_session_processes(session_folders(layout, session.id), session.id, grace=0.0)
        detail = "its driver ended without closing it" + (
            f"; {ended} of its processes were ended" if ended else ""
        )
        cost = session_usd(layout, session.id)
        ledger.append(
            SessionEnded(session=session.id, outcome="cut", detail=detail, turns=0, cost_usd=cost)
        )
    return open_sessions


def _front(folders: SessionFolders) -> int | None:
    try:
        return int(folders.pid.read_text("ascii"))
    except (OSError, ValueError):
        return None


def _until_gone(session: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while session_processes(session) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
