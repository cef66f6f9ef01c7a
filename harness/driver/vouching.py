"""What the processes that we start are known as: as we are, and never as more.

The loop and the tool server start supervisors that record runs. Each would decide for itself who
called it, and one that has left its parents looks like a person's. So whoever starts them vouches,
by the secret of `judge.identity`. Callers without a sandbox are only named: that proves nothing,
and lowers all the same.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.domain.grade import Caller, CallerKind
from harness.judge.identity import CALLER, announce, verify

_ONLY_NAMED = frozenset({CallerKind.OPEN, CallerKind.UNKNOWN})


@contextlib.contextmanager
def vouching(state: Path, caller: Caller, root: Path | None = None) -> Iterator[None]:
    """While the block runs, children that get `handed_on(os.environ)` are known as `caller`. What
    a judge's server handed to us is handed on as it is. `root`: the working tree of a loop, which
    who begins beside it is told."""
    if verify(os.environ, state) is not None:
        yield
        return
    before = dict(os.environ)
    with contextlib.ExitStack() as stack:
        if caller.kind in _ONLY_NAMED or not sys.platform.startswith("linux"):
            os.environ[CALLER] = str(caller)
        else:
            announced = announce(
                state,
                kind=caller.kind.value,
                sandbox=caller.sandbox,
                more={} if root is None else {"root": str(root)},
            )
            stack.callback(announced.withdraw)
            os.environ.update(announced.environment)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)
