"""The code of a run: every file that git does not ignore, stored in the vault by hash.

The manifest is an object in the vault too, and its hash is the snapshot's. Predict gets its code
from there, whatever happened to the working tree or to code.json since.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from harness.artifacts.content import read_bytes
from harness.artifacts.git import in_repository, listed_files
from harness.artifacts.objects import (
    ObjectDamagedError,
    damaged,
    lay_out,
    load_object,
    restore_object,
    store_bytes,
    store_file,
)
from harness.errors import UsageError
from harness.files import atomic_write, canonical_json, pretty_json, sha256_bytes

NEVER = frozenset({".git", ".harness", ".claude", ".mcp.json"})
"""Never part of a snapshot. Claude Code writes to the last two while a run trains."""
_SKIPPED_WITHOUT_GIT = frozenset({".venv", "venv", "__pycache__", "node_modules"})


@dataclass(frozen=True, kw_only=True)
class Snapshot:
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

    def manifest(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "executable": list(self.executable),
            "links": self.links,
            "missing": list(self.missing),
            "unreadable": list(self.unreadable),
        }


def take_snapshot(root: Path, objects: Path, *, exclude: Iterable[str] = ()) -> Snapshot:
    """Store the code below `root` in `objects`.

    `exclude`: files or folders relative to `root` that are not code (the plan's tables). Outside a
    git work tree every file counts except those of virtual environments and caches. Raises
    GitFailedError when there is a repository that git cannot read.
    """
    out = NEVER | {PurePosixPath(path).as_posix() for path in exclude}
    collected = _Collected(root, objects)
    for raw in _candidates(root):
        try:
            name = raw.decode("utf-8")
        except UnicodeDecodeError:
            collected.unreadable.append(raw.decode("utf-8", errors="backslashreplace"))
            continue
        if not _is_below(name, out):
            collected.add(name)
    manifest = collected.manifest()
    return _from_manifest(store_bytes(canonical_json(manifest), objects), manifest)


class _Collected:
    """The files read so far."""

    def __init__(self, root: Path, objects: Path) -> None:
        self._root = root.resolve()
        self._objects = objects
        self._inside: dict[Path, bool] = {}
        self._files: dict[str, str] = {}
        self._links: dict[str, str] = {}
        self._executable: list[str] = []
        self._missing: list[str] = []
        self.unreadable: list[str] = []

    def add(self, name: str) -> None:
        path = self._root / on_disk(name)
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            self._missing.append(name)
            return
        # A tracked folder may have been replaced by a link to somewhere outside the project.
        if not self._is_inside(path.parent):
            self.unreadable.append(name)
            return
        try:
            if stat.S_ISLNK(mode):
                target = os.fsencode(os.readlink(path))
                self._links[name] = target.decode("utf-8", errors="backslashreplace")
            else:
                self._files[name] = store_file(path, self._objects, follow=False)
                if mode & stat.S_IXUSR:
                    self._executable.append(name)
        except (UsageError, FileNotFoundError, PermissionError):
            self.unreadable.append(name)

    def manifest(self) -> dict[str, Any]:
        return {
            "files": self._files,
            "executable": self._executable,
            "links": self._links,
            "missing": self._missing,
            "unreadable": self.unreadable,
        }

    def _is_inside(self, folder: Path) -> bool:
        if folder not in self._inside:
            self._inside[folder] = folder.resolve() == folder
        return self._inside[folder]


def load_snapshot(objects: Path, name: str) -> Snapshot:
    """The snapshot whose hash is `name`, from the vault. Raises ObjectDamagedError."""
    return _from_manifest(name, orjson.loads(load_object(objects, name)))


def write_snapshot(snapshot: Snapshot, path: Path) -> None:
    """code.json: the manifest and its hash, for people."""
    atomic_write(path, pretty_json({"hash": snapshot.hash, **snapshot.manifest()}))


def read_snapshot(path: Path) -> Snapshot:
    """The snapshot in code.json. Raises NotFoundError, or UsageError when it was changed."""
    data = read_bytes(path)
    try:
        content = orjson.loads(data)
        snapshot = _from_manifest(content.pop("hash"), content)
        actual = sha256_bytes(canonical_json(snapshot.manifest()))
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
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


def _candidates(root: Path) -> Iterator[bytes]:
    """Names relative to `root`, sorted, as raw bytes of the file system."""
    if not in_repository(root):
        yield from sorted(_walk(root, b"", _SKIPPED_WITHOUT_GIT))
        return
    for name in listed_files(root):
        path = root / os.fsdecode(name)
        # A folder in git's list is a repository inside this one: git does not look into it.
        if path.is_dir() and not path.is_symlink():
            yield from sorted(_walk(root, name.rstrip(b"/"), _SKIPPED_WITHOUT_GIT))
        else:
            yield name


def _walk(root: Path, below: bytes, skipped: frozenset[str]) -> Iterator[bytes]:
    base = os.fsencode(root)
    skip = {os.fsencode(name) for name in skipped | NEVER}
    for folder, directories, names in os.walk(os.path.join(base, below) if below else base):
        links = [name for name in directories if os.path.islink(os.path.join(folder, name))]
        directories[:] = sorted(
            name for name in directories if name not in skip and name not in links
        )
        for name in (*names, *links):
            if name not in skip:
                yield os.path.relpath(os.path.join(folder, name), base)


def _is_below(name: str, folders: Iterable[str]) -> bool:
    parts = PurePosixPath(name)
    return any(
        parts == PurePosixPath(folder) or PurePosixPath(folder) in parts.parents
        for folder in folders
    )


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
