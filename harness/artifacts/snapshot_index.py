"""What the files of a project were when they were hashed last, so that they are read only once.

A file is believed to be the same while size, times, inode, device and mode are: a program can set a
file's time of modification, not its time of change. A file that changed shortly before it was
hashed is not remembered, since it could change once more within the same tick of the clock.
"""

import functools
import itertools
import os
import time
from collections.abc import Iterable, Set
from pathlib import Path
from typing import Any

import orjson

from harness.artifacts.looked import FIELDS, SETTLED_NS, Seen, seen
from harness.files import atomic_write, canonical_json, sha256_bytes

_VERSION = 3


class SnapshotIndex:
    """The index in the file `path`. Losing it costs time only."""

    def __init__(self, path: Path, root: Path) -> None:
        self._path, self._root = path, os.path.realpath(root)
        self._began = time.time_ns()
        kept = _load(path)
        if kept.get("version") != _VERSION or kept.get("root") != self._root:
            kept = {}
        self._kept = kept
        self._old: dict[str, tuple[Seen, str]] | None = None
        self._names: list[str] = []
        self._seen: list[Seen] = []
        self._hashes: list[str] = []
        self.outputs: set[str] = set(kept.get("outputs", []))
        """Files that a command of ours wrote its own output to."""

    def look(self) -> list[int] | None:
        """What the files of the last snapshot are now, for `unchanged`; None when one is gone."""
        # All in loops of C: for a large tree they are what a snapshot costs.
        kept = self._kept
        names = kept["names"].encode("utf-8").split(b"\0") if kept.get("names") else []
        try:
            folder = os.open(self._root, os.O_RDONLY)
        except OSError:
            return None
        try:
            looks = map(functools.partial(os.lstat, dir_fd=folder), names)
            return list(itertools.chain.from_iterable(map(seen, looks)))
        except OSError:
            return None
        finally:
            os.close(folder)

    def unchanged(
        self,
        listing: bytes,
        out: Iterable[str],
        own: Set[tuple[int, int]],
        now: list[int] | None,
    ) -> str | None:
        """The hash of the last snapshot, when git lists what it listed then and no file of it
        changed, nor is one of `own` (device, inode); `now` is from `look`."""
        kept = self._kept
        if now is None or kept.get("listing") != _key(listing, out):
            return None
        width = len(FIELDS)
        if now != kept["seen"] or not own.isdisjoint(
            zip(now[4::width], now[3::width], strict=True)
        ):
            return None
        snapshot: str = kept["snapshot"]
        return snapshot

    def hash_of(self, name: str, now: Seen) -> str | None:
        """The hash of a file that is as it was."""
        if self._old is None:
            kept = self._kept
            names, hashes = (
                kept[part].split("\0") if kept.get(part) else [] for part in ("names", "hashes")
            )
            statuses = zip(*[iter(kept.get("seen", ()))] * len(FIELDS), strict=True)
            self._old = dict(zip(names, zip(statuses, hashes, strict=True), strict=True))
        known = self._old.get(name)
        return known[1] if known is not None and known[0] == now else None

    def keep(self, name: str, now: Seen, digest: str) -> None:
        """`now` is what the file was before it was hashed."""
        if max(now[1], now[2]) + SETTLED_NS < self._began:
            self._names.append(name)
            self._seen.append(now)
            self._hashes.append(digest)

    def save(self, listing: bytes, out: Iterable[str], snapshot: str, *, files: int) -> None:
        """Write what was kept; of `files` files the snapshot consists, and of nothing else."""
        content = {
            "version": _VERSION,
            "root": self._root,
            "outputs": sorted(self.outputs),
            # Without all of its files the snapshot cannot be known again as a whole.
            "listing": _key(listing, out) if files == len(self._names) else None,
            "snapshot": snapshot,
            "names": "\0".join(self._names),
            "seen": list(itertools.chain.from_iterable(self._seen)),
            "hashes": "\0".join(self._hashes),
        }
        atomic_write(self._path, orjson.dumps(content), durable=False, mode=0o600)


def _key(listing: bytes, out: Iterable[str]) -> str:
    return sha256_bytes(canonical_json([sha256_bytes(listing), sorted(out)]))


def _load(path: Path) -> dict[str, Any]:
    try:
        content = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
