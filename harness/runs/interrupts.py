"""SIGTERM, Ctrl-C and a closed terminal for a supervisor: taken once, and never while a run is
ended or closed."""

import contextlib
import signal
import threading
from collections.abc import Iterator

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


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
