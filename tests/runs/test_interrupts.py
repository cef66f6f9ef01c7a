"""Signals to a supervisor: taken once, and not while a run is ended."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from harness.runs.endings import Interrupts


@pytest.fixture(autouse=True)
def _not_ignored() -> Iterator[None]:
    """A suite started in the background ignores SIGINT, one below nohup SIGHUP, and what is ignored
    stays so: nothing would be shown."""
    numbers = signal.SIGINT, signal.SIGHUP
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_first_raises_and_further_ones_do_not(number: int) -> None:
    interrupts = Interrupts()
    before = signal.getsignal(number)
    with interrupts.taken():
        with pytest.raises(KeyboardInterrupt):
            send(number)
        send(number)
        send(signal.SIGTERM)
    assert signal.getsignal(number) is before


def test_what_comes_while_held_waits() -> None:
    interrupts, done = Interrupts(), []
    with interrupts.taken():
        try:
            with interrupts.held():
                send()
                done.append("closed")
            done.append("went on")
        except KeyboardInterrupt:
            done.append("raised")
    assert done == ["closed", "raised"]


def test_what_waits_is_raised_where_it_is_heeded_and_the_ending_is_not_disturbed() -> None:
    interrupts, done = Interrupts(), []
    with interrupts.taken(), interrupts.held():
        send()
        try:
            with interrupts.heeded():
                done.append("watched")
        except KeyboardInterrupt:
            send()
            done.append("ended")
    assert done == ["ended"]


def test_an_ignored_signal_stays_ignored_and_the_other_is_taken() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts().taken():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            send(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                send(signal.SIGTERM)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_outside_the_main_thread_nothing_is_caught() -> None:
    before, seen = signal.getsignal(signal.SIGTERM), []

    def work() -> None:
        with Interrupts().taken():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
