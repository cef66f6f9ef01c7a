"""One loop a working tree, one supervisor an experiment: locks that the kernel takes back when
their holder dies."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from harness.artifacts.locate import Layout
from harness.artifacts.trees import this_tree
from harness.errors import RefusedError
from harness.files import lock

_TRIES, _PAUSE_SECONDS = 10, 0.1


@contextlib.contextmanager
def supervising(layout: Layout, experiment: str) -> Iterator[None]:
    """Hold the experiment. Raises RefusedError (already_training)."""
    # Several tries: a process that only asks whether it is held takes the lock for a moment.
    for _ in range(_TRIES):
        with try_supervising(layout, experiment) as held:
            if held:
                yield
                return
        time.sleep(_PAUSE_SECONDS)
    raise RefusedError(
        f"{experiment} is being trained by another process.",
        hint=f"Wait for it; `harness status` shows the runs of {experiment}.",
        code="already_training",
    )


@contextlib.contextmanager
def looping(layout: Layout) -> Iterator[None]:
    """Hold the working tree for one loop. Raises RefusedError (loop_running)."""
    # Not the state directory: trees share it, and each has an experiment of its own in work.
    path = layout.state / "locks" / f"loop-{this_tree(layout).id}.lock"
    with lock(path, wait=False) as held:
        if not held:
            raise RefusedError(
                "Another loop is running in this working tree: process"
                f" {path.read_text('ascii') or '(unknown)'}.",
                hint="Wait for it to end, or end that process, then run `harness continue`.",
                code="loop_running",
            )
        path.write_text(str(os.getpid()), "ascii")
        yield


@contextlib.contextmanager
def try_supervising(layout: Layout, experiment: str) -> Iterator[bool]:
    """Whether the experiment could be held."""
    with lock(_path(layout, experiment), wait=False) as held:
        yield held


def is_held(layout: Layout, experiment: str) -> bool:
    """Whether somebody holds the experiment; nothing is written, so a read-only disk answers."""
    path = _path(layout, experiment)
    if not path.exists():
        return False
    with lock(path, wait=False) as free:
        return not free


def _path(layout: Layout, experiment: str) -> Path:
    # In the state directory: a lock that training can reach, training can hold or remove.
    return layout.state / "locks" / f"train-{layout.experiment(experiment).name}.lock"
