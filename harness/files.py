"""How the harness writes, locks and hashes files. Standard library only: the run logger uses it."""

import contextlib
import errno
import fcntl
import glob
import hashlib
import json
import math
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

_NON_FINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}
_SUFFIX = ".tmp"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def strict(value: Any) -> Any:
    """A copy of `value` that strict JSON can hold: non-finite floats become "NaN", "Infinity",
    "-Infinity"."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return _NON_FINITE.get(value, "NaN")
    if isinstance(value, dict):
        return {str(key): strict(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [strict(part) for part in value]
    return value


def canonical_json(value: Any) -> bytes:
    """The one byte form of a JSON value, for hashes."""
    return json.dumps(
        strict(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode("utf-8")


def pretty_json(value: Any) -> str:
    """Strict JSON for files that people open: indented, keys in the order given, final newline."""
    return json.dumps(strict(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def sha256_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Hash of a file's bytes; symbolic links are followed. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def sync_directory(path: Path) -> None:
    """Make a rename or a new name in `path` survive a power cut."""
    with contextlib.suppress(OSError):  # some file systems open no directory
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(path: Path) -> None:
    """Make `path` and what is missing above it, none more open than the folder that it lies in."""
    for folder in _missing(path):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=no_looser(0o777, folder.parent))


def private_folder(path: Path) -> None:
    """Make `path` and what is missing above it for their owner alone, and close `path` to others
    where it is open, with all that lies in it. What `replacing`, `lock` and `make_folder` put there
    is as closed from the start, whatever the umask. Raises OSError."""
    for folder in _missing(path):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
    _close(path.resolve(), look_in=True)


def owner_only(path: str, flags: int) -> int:
    """An opener for `open`: a new file is its owner's alone."""
    return os.open(path, flags, 0o600)


def no_looser(mode: int, folder: Path | int) -> int:
    """`mode` without what `folder` does not grant to group and others either."""
    return mode & (0o700 | stat.S_IMODE(os.stat(folder).st_mode))


def _missing(path: Path) -> list[Path]:
    """Of `path` and the folders above it those that do not exist, the highest first."""
    return [folder for folder in reversed((path, *path.parents)) if not folder.exists()]


def _close(path: Path, *, look_in: bool) -> None:
    with contextlib.suppress(FileNotFoundError):  # a temporary file that is gone by now
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return
        if stat.S_IMODE(mode) & 0o077:
            # A file system without modes, or one that is read-only, stays as it is.
            with contextlib.suppress(OSError):
                path.chmod(stat.S_IMODE(mode) & ~0o077)
            look_in = True
        # Below a closed folder nothing is in anybody's reach: a vault of many files is no work.
        if look_in and stat.S_ISDIR(mode):
            for inner in path.iterdir():
                _close(inner, look_in=False)


def atomic_write(
    path: Path,
    data: bytes | str,
    *,
    durable: bool = True,
    mode: int = 0o644,
    below: Path | None = None,
) -> None:
    """Replace `path` with `data` as `replacing` does."""
    with replacing(path, durable=durable, mode=mode, below=below) as new:
        new.stream.write(data.encode("utf-8") if isinstance(data, str) else data)


@dataclass
class Replacement:
    stream: BinaryIO
    path: Path
    """May be changed until the block ends, within its folder: for a name made of the content."""


@contextlib.contextmanager
def replacing(
    path: Path, *, durable: bool = True, mode: int = 0o644, below: Path | None = None
) -> Iterator[Replacement]:
    """Replace `path` in one step with what the block writes: readers see the old bytes or the new.
    In a folder that is closed to others the file is too, whatever `mode` says.

    A folder in the file's place is set aside, beside it. With `durable` file and directory are
    synced. On any error the old file is intact and the temporary one is gone; one of a killed
    process stays until `remove_leftovers`. Between `below` and `path` no link is followed, also
    none that is put there meanwhile: OSError.
    """
    with contextlib.ExitStack() as opened:
        folder = None
        if below is None:
            make_folder(path.parent)
        else:
            within = path.parent.relative_to(below).parts
            folder = opened.enter_context(folder_below(below, within, make=True))
        with _replacing(path, folder, durable=durable, mode=mode) as new:
            yield new


@contextlib.contextmanager
def _replacing(
    path: Path, folder: int | None, *, durable: bool, mode: int
) -> Iterator[Replacement]:
    """`folder`: the descriptor of the one that `path` lies in, which is asked in place of its
    path."""
    # In the same directory: a rename is atomic only within one file system.
    descriptor, temporary = _temporary(path, folder)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            new = Replacement(stream=stream, path=path)
            yield new
            stream.flush()
            # The content must be on the disk before the name is: after a power cut, a name without
            # content would be an empty file in place of the old one.
            if durable:
                os.fsync(stream.fileno())
            os.fchmod(stream.fileno(), no_looser(mode, path.parent if folder is None else folder))
            place = _name(new.path, folder)
            with contextlib.suppress(FileNotFoundError):
                there = os.stat(place, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(there.st_mode):
                    aside = f"{temporary}.folder"
                    os.rename(place, aside, src_dir_fd=folder, dst_dir_fd=folder)
            os.replace(temporary, place, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        if isinstance(error, OSError) and error.filename in (None, temporary):
            error.filename = str(path)  # a write names none
        raise
    if durable and folder is not None:
        os.fsync(folder)
    elif durable:
        sync_directory(path.parent)


@contextlib.contextmanager
def folder_below(place: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder `parts` below `place`, of which none may be a link, also none that
    is put there meanwhile: OSError. With `make`, what is missing is made."""
    descriptor = os.open(place, _FOLDER)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, no_looser(0o777, descriptor), dir_fd=descriptor)
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def move_into_place(source: Path, target: Path) -> None:
    """Replace `target` by a file that is already written and synced, in the same folder."""
    os.replace(source, target)
    sync_directory(target.parent)


def _name(path: Path, folder: int | None) -> str:
    return str(path) if folder is None else path.name


def _temporary(path: Path, folder: int | None) -> tuple[int, str]:
    """A new file beside `path`, locked while its descriptor is open: its writer lives."""
    while True:
        name = _name(path.with_name(f".{path.name}.{os.urandom(4).hex()}{_SUFFIX}"), folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(name, flags, 0o600, dir_fd=folder)
        except FileExistsError:
            continue
        except OSError as error:
            error.filename = str(path)
            raise
        # Without locks, as on some network file systems, `remove_leftovers` removes nothing either.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, name
        # `remove_leftovers` took it for a leftover before it was locked.
        os.close(descriptor)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """An OSError of the block that names no path, as a write's does, leaves with this one."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


@contextlib.contextmanager
def lock(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold `path`, a folder or a file that is made, against other processes and threads. Yields
    whether it is held: without `wait` it is not when somebody else holds it."""
    # The kernel takes the lock back when its holder dies, so kill -9 leaves none behind. The file
    # stays after use: were it removed, a second holder could lock a new file of the same name.
    if path.is_dir():
        descriptor = os.open(path, os.O_RDONLY)
    else:
        make_folder(path.parent)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            if error.errno != errno.EROFS:
                raise
            descriptor = os.open(path, os.O_RDONLY)  # where nobody writes, one may still ask
    try:
        try:
            with naming(path):  # there may be no locks there
                fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def remove_leftovers(paths: Iterable[Path]) -> list[Path]:
    """Remove and return the temporary files that killed processes left beside `paths`."""
    removed = []
    for path in paths:
        for left in path.parent.glob(f".{glob.escape(path.name)}.{'[a-z0-9_]' * 8}{_SUFFIX}"):
            with contextlib.suppress(OSError), open(left, "rb", opener=_plainly) as stream:
                # A living writer holds the lock; then this raises and the file stays.
                fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()
                removed.append(left)
    return removed


def _plainly(path: str, flags: int) -> int:
    """Open without following a link or waiting for the other end of a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def open_file(path: Path) -> BinaryIO:
    """Open a file to read its bytes. Raises OSError, also for a pipe in its place, for which `open`
    would wait."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, "Not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def set_aside(path: Path, reason: str) -> Path:
    """Rename a damaged file to `<name>.<reason>-<n>`; returns the new path."""
    for number in range(1, 10_000):
        target = path.with_name(f"{path.name}.{reason}-{number}")
        try:
            # A link fails where the name is taken; a rename would overwrite it.
            os.link(path, target)
        except FileExistsError:
            continue
        os.unlink(path)
        return target
    raise FileExistsError(f"10,000 files named {path.name}.{reason}-* exist already")


def walk_files(root: Path) -> Iterator[Path]:
    """All but folders below `root`, sorted by folder; links are listed and not followed."""
    for folder, directories, names in os.walk(root):
        directories.sort()
        links = [name for name in directories if os.path.islink(os.path.join(folder, name))]
        for name in sorted([*names, *links]):
            yield Path(folder) / name


def irregular_file(root: Path) -> Path | None:
    """The first file below `root` that is a link, a pipe, a socket or a device."""
    return next(
        (path for path in walk_files(root) if not stat.S_ISREG(path.lstat().st_mode)), None
    )
