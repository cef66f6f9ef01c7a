"""Hand-offs of sessions inside the sandbox, recorded outside it: the receipts of their hooks say
when one ends or has its context summarised; what it did, its transcript tells."""

import contextlib
import re
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.process import harness_command

SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,100}\Z")
_LEFT = {("SessionEnd", None): "ended", ("SessionStart", "compact"): "had its context summarised"}
"""(event, source) of receipts -> what became of the session."""
_SECONDS = 5.0
"""For a hand-off to stand in the briefing that the session gets next."""
_MOST = 8
"""Sessions of one sandbox that hand over at the same time."""


class HandOffs:
    """Started in `root` with `environment`, one at a time of each session."""

    def __init__(self, root: Path, environment: Mapping[str, str], descriptor: int) -> None:
        self._root, self._environment, self._descriptor = root, environment, descriptor
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        self._closing = False

    def after(self, receipt: Mapping[str, Any]) -> None:
        """Have the session of `receipt` hand over, if it is one of its end or a compaction."""
        session = str(receipt.get("session"))
        why = _LEFT.get((str(receipt.get("event")), receipt.get("source")))
        if why is None or not SESSION_ID.match(session):
            return
        with self._lock:
            going = [name for name, child in self._children.items() if child.poll() is None]
            if self._closing or session in going or len(going) >= _MOST:
                return
            child = self._children[session] = subprocess.Popen(
                harness_command("handoff", "--left", session, "--why", why),
                cwd=self._root,
                env=dict(self._environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(self._descriptor,),
                start_new_session=True,
            )
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_SECONDS)

    def close(self, seconds: float) -> None:
        """Let what was begun end: at most so long."""
        with self._lock:
            self._closing = True
            children = list(self._children.values())
        deadline = time.monotonic() + seconds
        for child in children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.1, deadline - time.monotonic()))
            if child.poll() is None:
                child.kill()
                child.wait()
