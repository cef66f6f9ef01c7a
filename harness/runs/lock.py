"""One loop a working tree, one supervisor an experiment: locks that the kernel takes back when
their holder dies, and leases for other machines that share the folder."""

import contextlib
import glob
import time
from collections.abc import Iterator
from pathlib import Path

from harness.artifacts.locate import Layout
from harness.artifacts.trees import this_tree
from harness.clock import SystemClock
from harness.errors import RefusedError
from harness.files import lock
from harness.runs.held_by import Tell, holder, is_elsewhere, leased, words

_TRIES, _PAUSE_SECONDS = 10, 0.1


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
