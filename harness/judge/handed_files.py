"""Files that a request names, as they are when it is made, in a folder of the judge's own.

The judge's child reads outside the sandbox, with all rights of the user. A path that was checked
may lead elsewhere a moment later: the agent can put a link in place of the file, or of a folder on
the way. So no child opens an agent's path: it gets a copy, made without following any link.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import (
    contextmanager,
    suppress,
)
from pathlib import (
    Path,
    PurePath,
)

from harness.errors import RefusedError

MOST_BYTES = 256 << 20
MOST_FILES = 1000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def copied(place: Path, name: PurePath, target: Path) -> Path:
    """`name` below `place` as a copy below `target`: a file, or a folder's regular files.

    A file that is not there yet stays away. Raises RefusedError for a link, for anything that is
    neither, and beyond MOST_BYTES or MOST_FILES.
    """
    copy = target / (name if name.parts else place.name)
    copy.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError), _opened(place, name.parent.parts) as folder:
        _copy(folder, name.name or ".", copy, _Budget(), name)
    return copy


class _Budget:
    def __init__(self) -> None:
        self.bytes, self.files = MOST_BYTES, MOST_FILES

    def spend(self, size: int, name: PurePath) -> None:
        self.bytes, self.files = self.bytes - size, self.files - 1
        if self.bytes < 0 or self.files < 0:
            raise RefusedError(
                f"{name} is too much to hand over: expected at most {MOST_FILES} files and"
                f" {MOST_BYTES >> 20} MiB.",
                hint="Name fewer or smaller files.",
                code="not_a_request",
            )


@contextmanager
def _opened(place: Path, parts: tuple[str, ...]) -> Iterator[int]:
    """The folder `parts` below `place`; no part of it may be a link."""
    descriptor = os.open(place, _FOLDER)
    try:
        for part in parts:
            inner = _inside(descriptor, part, _FOLDER, PurePath(*parts))
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _inside(folder: int, entry: str, flags: int, name: PurePath) -> int:
    """Raises FileNotFoundError, RefusedError."""
    try:
        return os.open(entry, flags, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:  # a link among others
        raise _moved(name) from error


def _copy(folder: int, entry: str, copy: Path, budget: _Budget, name: PurePath) -> None:
    descriptor = _inside(folder, entry, _FILE, name)
    about = os.fstat(descriptor)
    if stat.S_ISDIR(about.st_mode):
        try:
            copy.mkdir()
            for inner in sorted(os.scandir(descriptor), key=lambda item: item.name):
                if inner.is_symlink() or not (inner.is_file() or inner.is_dir()):
                    continue
                _copy(descriptor, inner.name, copy / inner.name, budget, name / inner.name)
        finally:
            os.close(descriptor)
        return
    with os.fdopen(descriptor, "rb") as source:
        if not stat.S_ISREG(about.st_mode):
            raise _moved(name)
        budget.spend(about.st_size, name)
        with copy.open("wb") as out:
            shutil.copyfileobj(_Limited(source.fileno(), about.st_size), out)


class _Limited:
    """A file's first `size` bytes: it may grow while it is read."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor, self._left = descriptor, size

    def read(self, most: int = -1) -> bytes:
        block = os.read(self._descriptor, self._left if most < 0 else min(most, self._left))
        self._left -= len(block)
        return block


def _moved(name: PurePath) -> RefusedError:
    return RefusedError(
        f"{name} is, or lies behind, a link, or is no regular file or folder.",
        hint="Name the file itself.",
        code="not_a_request",
    )
