"""One loop a working tree, one supervisor an experiment: locks, and who holds them.

The kernel takes a dead holder's lock back, on this machine. Where the folder of the locks is shared
with another one, whose locks may not reach here, the lease beside it says owner, host and until
when: it is renewed while its holder lives, and one that was not is taken over. Nobody is blocked
for ever.
"""

import contextlib
import getpass
import glob
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from harness.artifacts.locate import Layout
from harness.artifacts.trees import this_tree
from harness.clock import Clock, SystemClock, iso, parse_iso
from harness.errors import RefusedError
from harness.files import atomic_write, lock
from harness.process import boot_id

_TRIES, _PAUSE_SECONDS = 10, 0.1
LASTS_S = 120.0
"""Of a lease that nobody renews."""
RENEWED_S = 30.0
CLOCKS_APART_S = 600.0
"""How much the clock of another machine may be ahead of ours."""

Tell = Callable[[str], None]


@contextlib.contextmanager
def supervising(layout: Layout, experiment: str) -> Iterator[None]:
    """Hold the experiment. Raises RefusedError (already_training)."""
    path = _path(layout, experiment)
    # Several tries: a process that only asks whether it is held takes the lock for a moment.
    for _ in range(_TRIES):
        with try_supervising(layout, experiment) as held:
            if held:
                with leased(path, lambda _text: None):
                    yield
                return
        time.sleep(_PAUSE_SECONDS)
    raise RefusedError(
        f"{experiment} is being trained by another process: {_by_whom(layout, experiment)}.",
        hint=f"Wait for it; `harness status` shows the runs of {experiment}.",
        code="already_training",
    )


@contextlib.contextmanager
def looping(layout: Layout, tell: Tell = lambda _text: None) -> Iterator[None]:
    """Hold the working tree for one loop; a lease that a dead one left is taken over, and told.
    Raises RefusedError (loop_running)."""
    # Not the state directory: trees share it, and each has an experiment of its own in work.
    path = layout.state / "locks" / f"loop-{this_tree(layout).id}.lock"
    with lock(path, wait=False) as held:
        before = holder(path)
        if not held or _leased_elsewhere(path):
            raise RefusedError(
                f"Another loop is running in this working tree: {words(before)}.",
                hint="Wait for it to end, or end that process, then run `harness continue`. Reading"
                " (`harness status`, `report`, `watch`) needs no lease.",
                code="loop_running",
            )
        with leased(path, tell):
            yield


@contextlib.contextmanager
def try_supervising(layout: Layout, experiment: str) -> Iterator[bool]:
    """Whether the experiment could be held: nobody supervises it, nor a seed of it, on any machine
    that shares the folder."""
    # In the state directory: a lock that training can reach, training can hold or remove.
    path = _path(layout, experiment)
    with lock(path, wait=False) as held:
        free = held and not _leased_elsewhere(path)
        yield free and _held_seed(layout, experiment) is None


@contextlib.contextmanager
def holding_seed(
    layout: Layout, experiment: str, seed: int, *, seconds: float = _TRIES * _PAUSE_SECONDS
) -> Iterator[None]:
    """Hold one seed of an experiment that another process fanned out: should that one die, others
    find this lock. Waits so many `seconds` for it. Raises RefusedError (already_training)."""
    path = _path(layout, experiment, f".seed-{seed}")
    for _ in range(max(1, round(seconds / _PAUSE_SECONDS))):
        with lock(path, wait=False) as held:
            if held:
                # Who started it here knows that the one before has ended, whatever its lease says.
                with leased(path, lambda _text: None):
                    yield
                return
        time.sleep(_PAUSE_SECONDS)
    raise RefusedError(
        f"Seed {seed} of {experiment} is being trained by another process: {words(holder(path))}.",
        hint=f"Wait for it; `harness status` shows the runs of {experiment}.",
        code="already_training",
    )


def is_held(layout: Layout, experiment: str) -> bool:
    """Whether somebody holds the experiment, or a seed of it; nothing is written, so a read-only
    disk answers."""
    path = _path(layout, experiment)
    return (path.exists() and _taken(path)) or _held_seed(layout, experiment) is not None


def _by_whom(layout: Layout, experiment: str) -> str:
    path = _path(layout, experiment)
    seed = None if _taken(path) else _held_seed(layout, experiment)
    return words(holder(seed or path))


def _taken(path: Path) -> bool:
    with lock(path, wait=False) as free:
        return not free or _leased_elsewhere(path)


def _leased_elsewhere(path: Path) -> bool:
    """Whether another machine says that it holds `path`: its lock may not be seen here."""
    return is_elsewhere(holder(path), SystemClock().now())


def _held_seed(layout: Layout, experiment: str) -> Path | None:
    """The lock of a seed that somebody holds."""
    # Whoever fanned the experiment out may be dead, and a supervisor of it on a node alive.
    pattern = glob.escape(_path(layout, experiment).stem) + ".seed-*.lock"
    return next(filter(_taken, (layout.state / "locks").glob(pattern)), None)


def _path(layout: Layout, experiment: str, part: str = "") -> Path:
    name = layout.experiment(experiment).name
    return layout.state / "locks" / f"train-{name}{part}.lock"


# Leases


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
