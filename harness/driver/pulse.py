"""Whether a session still lives."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

LONGEST_WORK_S = 900.0
"""A tool of ours that takes longer hangs: each waits for less, see LONGEST_WAIT_S."""


class Pulse:
    """Time of the last sign of life; a harness tool or hook at work counts as one, for a while."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._last, self._began = now, now(), 0.0
        self._busy: list[str] = []
        self._lock = threading.Lock()  # tools work in threads of their own

    def beat(self) -> None:
        self._last = self._now()

    @contextlib.contextmanager
    def working(self, name: str = "") -> Iterator[None]:
        """`name` of the tool or hook; what a tool does inside its own work needs none."""
        with self._lock:
            self._busy.append(name)
            self._began = self._now()
        try:
            yield
        finally:
            with self._lock:
                self._busy.remove(name)
            self.beat()

    def at_work(self) -> list[str]:
        """Names of the tools and hooks that have not answered."""
        with self._lock:
            return sorted(set(self._busy) - {""})

    def silent_for(self) -> float:
        if self._busy:
            return max(0.0, self._now() - max(self._last, self._began) - LONGEST_WORK_S)
        return self._now() - self._last
