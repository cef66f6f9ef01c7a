"""The code of a run: every file that git does not ignore, stored in the vault by hash.

The manifest is an object in the vault too, and its hash is the snapshot's. Predict gets its code
from there, whatever happened to the working tree or to code.json since.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from harness.artifacts.content import read_bytes
from harness.artifacts.git import in_repository, listed_files, listing_of
from harness.artifacts.looked import seen
from harness.artifacts.object_batch import ObjectBatch
from harness.artifacts.objects import (
    ObjectDamagedError,
    damaged,
    lay_out,
    load_object,
    restore_object,
)
from harness.artifacts.snapshot_index import SnapshotIndex
from harness.contract.artifacts import BY_NAME, DRAFT
from harness.domain.late import Late, dataclass
from harness.domain.variables import UNREGISTERED
from harness.errors import UsageError
from harness.files import atomic_write, sha256_bytes

NEVER = frozenset({".git", ".harness", ".claude", ".mcp.json"})
"""Never part of a snapshot. Claude Code writes to the last two while a run trains."""
MOST_UNTRACKED = 50 << 20
"""Bytes of a file that git neither tracks nor ignores: a larger one is named, and not copied."""
_BYTE_CODE = (".pyc", ".pyo")
"""Python may run it in place of the source beside it, which people read."""
_NOHUP = "nohup.out"
_NO_CODE = ("__pycache__", UNREGISTERED)
_PLANS = BY_NAME["plans"].path
_SORTED = orjson.OPT_SORT_KEYS
_SKIPPED_WITHOUT_GIT = frozenset({".venv", "venv", "__pycache__", "node_modules", UNREGISTERED})


@dataclass(frozen=True, kw_only=True)
class Snapshot(Late):
    hash: str
    files: dict[str, str]
    """Path relative to the root, with forward slashes -> SHA-256 of the bytes."""
    executable: tuple[str, ...] = ()
    links: dict[str, str]
    """Symbolic link -> the text of its target; never followed."""
    missing: tuple[str, ...] = ()
    """Tracked by git, but deleted from the working tree."""
    unreadable: tuple[str, ...] = ()
    """Left out: no regular file, no permission, or a name that is not UTF-8."""
    too_large: tuple[str, ...] = ()
    """Left out too, and no part of the hash: see MOST_UNTRACKED. Known when it was just taken."""

    def manifest(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "executable": list(self.executable),
            "links": self.links,
            "missing": list(self.missing),
            "unreadable": list(self.unreadable),
        }


def take_snapshot(
    root: Path, objects: Path, *, exclude: Iterable[str] = (), index: Path | None = None
) -> Snapshot:
    """Store the code below `root` in `objects`.

    `exclude`: files or folders relative to `root` that are not code (the plan's tables). `index`:
    where to remember what was hashed. Outside a git work tree every file counts except those of
    virtual environments and caches. Raises GitFailedError when there is a repository that git
    cannot read.
    """
    out = {PurePosixPath(path).as_posix() for path in exclude}
    known = None if index is None else SnapshotIndex(index, root)
    listing, now = _looked_at(root, known)
    if known is not None and listing is not None:
        whole = known.unchanged(listing, out, _own_output(), now)
        if whole is not None:
            with contextlib.suppress(ObjectDamagedError):
                return load_snapshot(objects, whole)
    with ObjectBatch(objects) as batch:
        collected = _Collected(root, batch, known)
        for raw, tracked in _candidates(root, listing):
            try:
                name = raw.decode("utf-8")
            except UnicodeDecodeError:
                collected.unreadable.append(raw.decode("utf-8", errors="backslashreplace"))
                continue
            if not is_left_out(name, out):
                collected.add(name, tracked=tracked)
        snapshot = kept(batch, collected.manifest())
    if known is not None:
        known.save(listing or b"", out, snapshot.hash, files=collected.looked)
    return replace(snapshot, too_large=tuple(collected.too_large))


def _looked_at(root: Path, known: SnapshotIndex | None) -> tuple[bytes | None, list[int] | None]:
    """(git's listing, or None without a repository; what the files of the last snapshot are now).

    Both wait for the disk, and neither needs the other: they look at the same time.
    """
    if not in_repository(root):
        return None, None
    with ThreadPoolExecutor(1) as beside:
        listing = beside.submit(listing_of, root)
        now = None if known is None else known.look()
        return listing.result(), now


def kept(batch: ObjectBatch, manifest: dict[str, Any]) -> Snapshot:
    """The snapshot of a manifest whose files are in `batch`."""
    return _from_manifest(batch.add(orjson.dumps(manifest, option=_SORTED)), manifest)


class _Collected:
    """The files read so far."""

    def __init__(self, root: Path, batch: ObjectBatch, index: SnapshotIndex | None) -> None:
        self._root = os.path.realpath(root)
        self._batch, self._index = batch, index
        self._inside: dict[str, bool] = {}
        self._own = _own_output()
        self.files: dict[str, str] = {}
        self._links: dict[str, str] = {}
        self._executable: list[str] = []
        self._missing: list[str] = []
        self.unreadable: list[str] = []
        self.too_large: list[str] = []
        self.looked = 0
        """How many names were looked at, whatever became of them."""

    def add(self, name: str, *, tracked: bool) -> None:
        self.looked += 1
        path = f"{self._root}/{on_disk(name)}"
        try:
            status = os.lstat(path)
        except OSError:
            self._missing.append(name)
            return
        if stat.S_ISDIR(status.st_mode):
            # A folder in git's list is a repository inside this one: git does not look into it.
            for below in sorted(_walk(Path(path), _SKIPPED_WITHOUT_GIT)):
                with contextlib.suppress(UnicodeDecodeError):
                    inner = f"{name.rstrip('/')}/{below.decode('utf-8')}"
                    if not is_left_out(inner, frozenset()):
                        self.add(inner, tracked=False)
            return
        # A tracked folder may have been replaced by a link to somewhere outside the project.
        if not self._is_inside(os.path.dirname(path)):
            self.unreadable.append(name)
        elif not tracked and self._is_output(name, status):
            return
        elif not tracked and status.st_size > MOST_UNTRACKED:
            self.too_large.append(name)
        else:
            self._read(name, path, status)

    def _read(self, name: str, path: str, status: os.stat_result) -> None:
        try:
            now = seen(status)
            if stat.S_ISLNK(status.st_mode):
                target = os.fsencode(os.readlink(path))
                self._links[name] = target.decode("utf-8", errors="backslashreplace")
                if self._index is not None:
                    self._index.keep(name, now, "")
                return
            known = None if self._index is None else self._index.hash_of(name, now)
            digest = known or self._batch.add_file(Path(path), below=Path(self._root))
            if self._index is not None:
                self._index.keep(name, now, digest)
            self.files[name] = digest
            if status.st_mode & stat.S_IXUSR:
                self._executable.append(name)
        except (UsageError, FileNotFoundError, PermissionError):
            self.unreadable.append(name)

    def manifest(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "executable": self._executable,
            "links": self._links,
            "missing": self._missing,
            "unreadable": self.unreadable,
        }

    def _is_inside(self, folder: str) -> bool:
        if folder not in self._inside:
            self._inside[folder] = os.path.realpath(folder) == folder
        return self._inside[folder]

    def _is_output(self, name: str, status: os.stat_result) -> bool:
        """Whether this command, or one before it, writes its own output to the file."""
        if (status.st_dev, status.st_ino) in self._own:
            if self._index is not None:
                self._index.outputs.add(name)
            return True
        return self._index is not None and name in self._index.outputs


def _own_output() -> set[tuple[int, int]]:
    """Device and inode of the files to which this process's own output goes."""
    files = set()
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode):
                files.add((status.st_dev, status.st_ino))
    return files


def load_snapshot(objects: Path, name: str) -> Snapshot:
    """The snapshot whose hash is `name`, from the vault. Raises ObjectDamagedError."""
    return _from_manifest(name, orjson.loads(load_object(objects, name)))


def write_snapshot(snapshot: Snapshot, path: Path) -> None:
    """code.json: the manifest and its hash, for people. Raises UsageError (folder_is_link) where
    the experiment's folder is a link: what it leads to is not the harness's to write."""
    content = {"hash": snapshot.hash, **snapshot.manifest()}
    data = orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n"
    try:
        atomic_write(path, data, below=path.parents[1])
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise UsageError(
            f"{path.parent} is a link, and the files of an experiment are written where it is.",
            hint="Put a real folder in its place.",
            code="folder_is_link",
        ) from error


def read_snapshot(path: Path) -> Snapshot:
    """The snapshot in code.json. Raises NotFoundError, or UsageError when it was changed."""
    data = read_bytes(path)
    try:
        content = orjson.loads(data)
        snapshot = _from_manifest(content.pop("hash"), content)
        actual = sha256_bytes(orjson.dumps(snapshot.manifest(), option=_SORTED))
    except (
        orjson.JSONDecodeError,
        orjson.JSONEncodeError,
        KeyError,
        TypeError,
        AttributeError,
        ValueError,
    ) as error:
        raise UsageError(
            f"{path} is not a code snapshot: {error}.",
            hint="Train again: registering a run writes it.",
        ) from error
    if actual != snapshot.hash:
        raise UsageError(
            f"{path} was changed: it states the hash {snapshot.hash[:12]}, its content has"
            f" {actual[:12]}.",
            hint="Read the snapshot by the run's code hash from the vault.",
            code="code_changed",
        )
    return snapshot


def materialise(
    snapshot: Snapshot, objects: Path, target: Path, *, live: Path | None = None
) -> list[str]:
    """Write the snapshot's files into the new or empty folder `target`; return the links that were
    left out since they lead out of it.

    A changed blob is put back from the same file below `live`, if that has its bytes. Raises
    ObjectDamagedError for one that is not, UsageError for a bad path.
    """
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise UsageError(f"{target} is not empty.", hint="Materialise into a new folder.")
    executable, made = set(snapshot.executable), {target}
    for name, expected in snapshot.files.items():
        path = _safe(target, name)
        if path.parent not in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            made.add(path.parent)
        mode = 0o755 if name in executable else 0o644
        try:
            lay_out(objects / expected, path, expected, mode=mode)
        except ObjectDamagedError:
            if live is None:
                raise
            _restore(objects, expected, live / on_disk(name))
            lay_out(objects / expected, path, expected, mode=mode)
    left_out = []
    # Links come last, so that no file is written through one.
    for name, destination in snapshot.links.items():
        path = _safe(target, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        end = os.path.normpath(path.parent / destination)
        if os.path.isabs(destination) or not Path(end).is_relative_to(target):
            left_out.append(name)
        else:
            path.symlink_to(destination)
    return left_out


def _restore(objects: Path, expected: str, source: Path) -> None:
    try:
        restore_object(objects, expected, source)
    except UsageError as error:
        raise damaged(objects / expected, expected, f"{source}, which cannot be read") from error


def on_disk(name: str) -> str:
    """A manifest's name for system calls, whatever the locale."""
    return os.fsdecode(name.encode("utf-8"))


def _candidates(root: Path, listing: bytes | None) -> Iterator[tuple[bytes, bool]]:
    """(name relative to `root`, as raw bytes of the file system, whether git tracks it), sorted;
    `listing` is git's, None without a repository."""
    if listing is None:
        yield from ((name, False) for name in sorted(_walk(root, _SKIPPED_WITHOUT_GIT)))
        return
    tracked, others = listed_files(listing)
    yield from sorted([*((name, True) for name in tracked), *((name, False) for name in others)])


def _walk(root: Path, skipped: frozenset[str]) -> Iterator[bytes]:
    """Files below `root`, relative to it."""
    base = os.fsencode(root)
    skip = {os.fsencode(name) for name in skipped | NEVER}
    for folder, directories, names in os.walk(base):
        links = [name for name in directories if os.path.islink(os.path.join(folder, name))]
        directories[:] = sorted(
            name for name in directories if name not in skip and name not in links
        )
        for name in (*names, *links):
            if name not in skip:
                yield os.path.relpath(os.path.join(folder, name), base)


def is_left_out(name: str, out: Set[str]) -> bool:
    """Whether the name is no code: excluded, the harness's, git's, byte code, nohup's output."""
    first, _, rest = name.partition("/")
    if first in NEVER or name.endswith(_BYTE_CODE) or name == _NOHUP:
        return True
    if first == _PLANS and name.endswith(DRAFT):  # may be written while an experiment is open
        return True
    if not rest:
        return name in out
    if any(f"{folder}/" in name and folder in name.split("/") for folder in _NO_CODE):
        return True
    return bool(out) and any(parent in out for parent in _with_parents(name))


def _with_parents(name: str) -> Iterator[str]:
    yield name
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _safe(target: Path, name: str) -> Path:
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts:
        raise UsageError(
            f"The snapshot contains the path {name!r}, which is outside its folder.",
            hint="Train again.",
        )
    return target / on_disk(name)


def _from_manifest(name: str, content: dict[str, Any]) -> Snapshot:
    try:
        return Snapshot(
            hash=name,
            files=dict(content["files"]),
            links=dict(content["links"]),
            executable=tuple(content["executable"]),
            missing=tuple(content["missing"]),
            unreadable=tuple(content["unreadable"]),
        )
    except KeyError as error:
        raise damaged(Path("code.json"), name, f"without {error}") from error
