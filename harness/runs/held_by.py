"""Who holds a lock: owner, host and until when, beside a lock of the kernel.

The kernel takes a dead holder's lock back, on this machine. Where the folder of the locks is shared
with another one, whose locks may not reach here, the lease says it: it is renewed while its holder
lives, and one that was not is taken over. Nobody is blocked for ever.
"""

import contextlib
import getpass
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from harness.clock import Clock, SystemClock, iso, parse_iso
from harness.files import atomic_write
from harness.process import boot_id

LASTS_S = 120.0
"""Of a lease that nobody renews."""
RENEWED_S = 30.0
CLOCKS_APART_S = 600.0
"""How much the clock of another machine may be ahead of ours."""

Tell = Callable[[str], None]


def holder(path: Path) -> dict[str, Any]:
    """What the lease beside the lock `path` says; {} where none stands or it cannot be read."""
    try:
        said: dict[str, Any] = json.loads(_beside(path).read_text("utf-8"))
        parse_iso(said["until"])
        return said if all(name in said for name in _FIELDS) else {}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def words(lease: Mapping[str, Any]) -> str:
    """Who it is, for a sentence."""
    if not lease:
        return "process (unknown)"
    return (
        f"process {lease['pid']} of {lease['owner']} on {lease['host']}, since {lease['since']}"
        f" (its lease ends at {lease['until']} unless it is renewed)"
    )


def is_elsewhere(lease: Mapping[str, Any], now: datetime) -> bool:
    """Whether it is of another machine, whose locks are not seen here, and still runs. One that
    ends later than any lease can is of a clock that is wrong: it holds nothing."""
    if not lease or lease["host"] == socket.gethostname() or lease["boot"] == boot_id():
        return False
    left = (parse_iso(lease["until"]) - now).total_seconds()
    return 0 < left <= LASTS_S + CLOCKS_APART_S


@contextlib.contextmanager
def leased(path: Path, tell: Tell, clock: Clock | None = None) -> Iterator[None]:
    """Say who holds the lock `path`, which the caller has; renew it until the block ends. What a
    dead holder left is told."""
    left = holder(path)
    if left:
        tell(f"taken over from {words(left)}: it ended without giving it back")
    clock = clock or SystemClock()
    since, done = clock.now(), threading.Event()

    def write() -> None:
        lease = {
            "owner": _owner(),
            "host": socket.gethostname(),
            "boot": boot_id(),
            "pid": os.getpid(),
            "since": iso(since),
            "until": iso(clock.now() + timedelta(seconds=LASTS_S)),
        }
        # A disk that is full, or read-only by now, ends no loop: the kernel's lock still holds.
        with contextlib.suppress(OSError):
            atomic_write(_beside(path), json.dumps(lease), durable=False, mode=0o600)

    def renew() -> None:
        while not done.wait(RENEWED_S):
            write()

    write()
    keeper = threading.Thread(target=renew, name="lease", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        done.set()
        keeper.join()
        with contextlib.suppress(OSError):
            _beside(path).unlink()


_FIELDS = ("owner", "host", "boot", "pid", "since", "until")


def _owner() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        return f"uid {os.getuid()}"


def _beside(path: Path) -> Path:
    return path.with_suffix(".lease.json")
