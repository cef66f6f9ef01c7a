"""One supervisor an experiment: a lock that the kernel takes back when its holder dies."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator

from harness.artifacts.locate import Layout
from harness.errors import RefusedError

_TRIES, _PAUSE_SECONDS = 10, 0.1


@contextlib.contextmanager
def supervising(layout: Layout, experiment: str) -> Iterator[None]:
    """Hold the experiment. Raises RefusedError (already_training) when another process goes on holding it; one that
    only looks whether it is held is waited for."""
    for _ in range(_TRIES):
        with try_supervising(layout, experiment) as held:
            if held:
                yield
                return
        time.sleep(_PAUSE_SECONDS)
    raise RefusedError(
        f"{experiment} is being trained by another process.",
        mend=f"Wait for it; `harness status` shows the runs of {experiment}.",
        code="already_training",
    )


@contextlib.contextmanager
def try_supervising(layout: Layout, experiment: str) -> Iterator[bool]:
    """Whether the experiment could be held; the lock lies in the state directory, out of training's reach."""
    path = layout.state / "locks" / f"train-{layout.experiment(experiment).name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
