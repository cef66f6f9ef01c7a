"""Whether a session still lives."""

import contextlib
import time
from collections.abc import Callable, Iterator


class Pulse:
    """Time of the last sign of life; a running harness tool or hook counts as one."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._last, self._busy = now, now(), 0

    def beat(self) -> None:
        self._last = self._now()

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self.beat()

    def silent_for(self) -> float:
        return 0.0 if self._busy else self._now() - self._last
