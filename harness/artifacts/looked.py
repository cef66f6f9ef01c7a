"""What was read to show it, so that a page reads nothing twice.

`harness status` asks whether verdicts still stand, again and again: it must not go through all rows
and checkpoints each time. Inside `looking` a file is believed to be as it was while size, times,
inode, device and mode are. Gates are never inside: they read and hash, whatever stands here.
"""

import contextlib
import json
import operator
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from harness.files import atomic_write, canonical_json

T = TypeVar("T")
SETTLED_NS = 2_000_000_000
"""The coarsest clock of a file system: what changed so shortly before could change once more within
one tick."""
Seen = tuple[int, ...]
FIELDS = ("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_dev", "st_mode")
seen: Callable[[os.stat_result], Seen] = operator.attrgetter(*FIELDS)
"""What a file is known by. A program can set its time of modification, not its time of change."""
_MOST = 20_000
"""Entries that are kept; beyond, only those of the last look are."""


class _Look:
    """The answers in the file `path`. Losing it costs time only."""

    def __init__(self, path: Path) -> None:
        self._path, self._began = path, time.time_ns()
        self._kept = _load(path)
        self._now: dict[str, Any] = {}

    def of(
        self,
        name: str,
        files: Sequence[Path],
        make: Callable[[], T],
        also: Any,
    ) -> T:
        marks = [_mark(file) for file in files]
        key = json.loads(canonical_json([marks, also]))
        known = self._kept.get(name)
        if isinstance(known, list) and len(known) == 2 and known[0] == key:
            answer: T = known[1]
            return answer
        answer = make()
        if all(self._settled(mark) for mark in marks):
            self._now[name] = [key, answer]
        return answer

    def _settled(self, mark: Seen | None) -> bool:
        """A link may lead elsewhere tomorrow; what is not there has no time."""
        if mark is None:
            return True
        changed = max(mark[1], mark[2])
        return changed + SETTLED_NS < self._began and not stat.S_ISLNK(mark[5])

    def save(self) -> None:
        if not self._now:
            return
        old = self._kept if len(self._kept) < _MOST else {}
        with contextlib.suppress(OSError):  # a state directory that cannot be written
            data = json.dumps({**old, **self._now}).encode("utf-8")
            atomic_write(self._path, data, durable=False, mode=0o600)


_LOOK: ContextVar[_Look | None] = ContextVar("look", default=None)


def is_looking() -> bool:
    return _LOOK.get() is not None


@contextlib.contextmanager
def looking(path: Path) -> Iterator[None]:
    """What is remembered is kept in the file `path`; nests."""
    if is_looking():
        yield
        return
    look = _Look(path)
    token = _LOOK.set(look)
    try:
        yield
        look.save()
    finally:
        _LOOK.reset(token)


def remembered(name: str, files: Sequence[Path], make: Callable[[], T], *, also: Any = None) -> T:
    """What `make` finds in `files`, as plain JSON. `also`: what else decides it. Outside `looking`
    it is made each time."""
    look = _LOOK.get()
    return make() if look is None else look.of(name, files, make, also)


def _mark(path: Path) -> Seen | None:
    try:
        return seen(os.lstat(path))
    except OSError:
        return None


def _load(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
