"""SIGTERM and Ctrl-C for a supervisor: taken once, and never in the middle of ending or closing a
run."""

import contextlib
import signal
import threading
from collections.abc import Iterator

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interrupts:
    """The first of the two signals raises KeyboardInterrupt, at once or when the block that holds
    it ends; further ones are ignored: the first is being answered. Outside the main thread nothing
    is caught."""

    def __init__(self) -> None:
        self._held = self._waiting = self._raised = False

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """For this long the two signals come here; one that the process ignores already stays
        ignored."""
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
        self._waiting = not self._raised
        if not self._held:
            self._raise_waiting()

    def _raise_waiting(self) -> None:
        if self._waiting:
            self._waiting, self._raised = False, True
            raise KeyboardInterrupt
