"""Hand-offs of sessions inside the sandbox, recorded outside it: the receipts of their hooks say
when one ends or has its context summarised; what it did, its transcript tells."""

import contextlib
import re
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.clock import iso
from harness.domain.plain_text import one_line
from harness.guard.policy.receipt import FAILED, append_receipt
from harness.judge.identity import Announcement
from harness.process import harness_command

SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,100}\Z")
ENDED, SUMMARISED = "ended", "had its context summarised"
"""What became of a session."""
_COMPACT = ("SessionStart", "compact")
_LEFT = {("SessionEnd", None): ENDED, _COMPACT: SUMMARISED}
"""(event, source) of receipts -> what became of the session."""
_SECONDS = 5.0
"""For a hand-off to stand in the briefing that the session gets next."""
_MOST = 8
"""Sessions of one sandbox that hand over at the same time."""


@dataclass(kw_only=True)
class _Due:
    event: str
    why: str
    over: threading.Event = field(default_factory=threading.Event)


class HandOffs:
    """Started in `root` with `environment`, one at a time of each session; one that is not recorded
    leaves a receipt of that in `receipts`."""

    def __init__(
        self,
        root: Path,
        environment: Mapping[str, str],
        announcement: Announcement,
        receipts: Path,
    ) -> None:
        self._root, self._environment = root, environment
        self._announcement, self._receipts = announcement, receipts
        self._due: dict[str, list[_Due]] = {}
        """Of each session the one at work, and at most one that waits for it."""
        self._children: set[subprocess.Popen[bytes]] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closing = self._late = False

    def after(self, receipt: Mapping[str, Any]) -> None:
        """Have the session of `receipt` hand over, if it is one of its end or a compaction; wait
        for that of a compaction, whose session reads the briefing next."""
        session, event = str(receipt.get("session")), str(receipt.get("event"))
        kind = (event, receipt.get("source"))
        why = _LEFT.get(kind)
        if why is None or not SESSION_ID.match(session):
            return
        due = self._queued(session, _Due(event=event, why=why))
        if due is None:
            self._failed(session, event, "the judge is closing, or too many sessions hand over")
        elif kind == _COMPACT:
            due.over.wait(_SECONDS)

    def _queued(self, session: str, due: _Due) -> _Due | None:
        with self._lock:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            if self._closing or (session not in self._due and len(self._due) >= _MOST):
                return None
            queue = self._due.setdefault(session, [])
            if len(queue) > 1:  # it has not begun, so it tells this too
                queue[1].event, queue[1].why = due.event, due.why
                return queue[1]
            queue.append(due)
            if len(queue) == 1:
                thread = threading.Thread(target=self._work, args=(session,), daemon=True)
                self._threads.append(thread)
                thread.start()
            return due

    def _work(self, session: str) -> None:
        while True:
            with self._lock:
                queue = self._due[session]
                if not queue:
                    del self._due[session]
                    return
                due = queue[0]
            words = self._recorded(session, due)
            if words:
                self._failed(session, due.event, words)
            due.over.set()
            with self._lock:
                queue.pop(0)

    def _recorded(self, session: str, due: _Due) -> str:
        """Why it was not; "" where it was."""
        with self._lock:
            if self._late:
                return "the judge had closed"
            try:
                child = subprocess.Popen(
                    harness_command("handoff", "--left", session, "--why", due.why),
                    cwd=self._root,
                    env=dict(self._environment),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    pass_fds=(self._announcement.descriptor,),
                    start_new_session=True,
                )
            except OSError as error:
                return str(error)
            self._children.add(child)
        _, said = child.communicate()
        with self._lock:
            self._children.discard(child)
        words = one_line(said.decode("utf-8", "replace"), 500)
        code = child.returncode
        return f"`harness handoff --left` ended with {code}: {words}" if code else ""

    def _failed(self, session: str, event: str, words: str) -> None:
        line = {"time": iso(datetime.now(UTC)), "session": session, "event": event}
        sandbox = self._announcement.sandbox.value
        fault = {"rule": FAILED, "error": words, "sandbox": sandbox}
        with contextlib.suppress(OSError):
            append_receipt(str(self._receipts), {**line, "permission": None, **fault})

    def close(self, seconds: float) -> None:
        """Let what was begun end: at most so long."""
        with self._lock:
            self._closing = True
            threads = list(self._threads)
        deadline = time.monotonic() + seconds
        for thread in threads:
            thread.join(max(0.1, deadline - time.monotonic()))
        with self._lock:
            self._late = True
            for child in self._children:
                child.kill()
        for thread in threads:
            thread.join(1.0)
