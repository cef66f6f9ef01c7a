"""What the files of a project were when they were hashed last, so that they are read only once.

A file is believed to be the same while size, times, inode and device are: a program can set a
file's time of modification, not its time of change. A file that changed shortly before it was
hashed is not remembered, since it could change once more within the same tick of the clock.
"""

import os
import time
from collections.abc import Set
from pathlib import Path
from typing import Any

import orjson

from harness.files import atomic_write

_VERSION = 1
_SETTLED_NS = 2_000_000_000
"""The coarsest clock of a file system."""

Seen = tuple[int, int, int, int, int]


def seen(status: os.stat_result) -> Seen:
    return (
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        status.st_dev,
    )


class SnapshotIndex:
    """The index in the file `path`. Losing it costs time only."""

    def __init__(self, path: Path, root: Path) -> None:
        self._path, self._root = path, str(root)
        self._began = time.time_ns()
        self._changed = False
        kept = _load(path)
        if kept.get("version") != _VERSION or kept.get("root") != self._root:
            kept = {}
        self._hashes: dict[str, str] = kept.get("hashes", {})
        self._known: dict[str, list[int]] = kept.get("known", {})
        self.outputs: set[str] = set(kept.get("outputs", []))
        """Files that a command of ours wrote its own output to."""

    def hash_of(self, name: str, now: Seen) -> str | None:
        """The hash of a file that is as it was."""
        known = self._known.get(name)
        return self._hashes.get(name) if known is not None and tuple(known) == now else None

    def keep(self, name: str, now: Seen, digest: str) -> None:
        """`now` is what the file was before it was hashed."""
        if max(now[1], now[2]) + _SETTLED_NS < self._began:
            self._known[name], self._hashes[name] = list(now), digest
            self._changed = True

    def is_output(self, name: str) -> None:
        self._changed = self._changed or name not in self.outputs
        self.outputs.add(name)

    def save(self, names: Set[str]) -> None:
        """Write what is known of `names`; forget the others."""
        gone = self._known.keys() - names
        for name in gone:
            del self._known[name], self._hashes[name]
        if gone or self._changed:
            content = {
                "version": _VERSION,
                "root": self._root,
                "outputs": sorted(self.outputs),
                "known": self._known,
                "hashes": self._hashes,
            }
            atomic_write(self._path, orjson.dumps(content), durable=False, mode=0o600)


def _load(path: Path) -> dict[str, Any]:
    try:
        content = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
