"""Content hashes of what training leaves behind: files and folders, named by what they hold."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from harness.errors import NotFoundError, UsageError
from harness.files import canonical_json, sha256_bytes

_BLOCK = 1 << 20


def hash_path(path: Path) -> str:
    """SHA-256 of a file's bytes, or of a folder's sorted (relative path, SHA-256) pairs.

    Links inside a folder count by the text of their target and are not followed; empty folders do
    not count. Raises NotFoundError when there is nothing, UsageError for a pipe, a socket or a
    device (they would never end) and for what cannot be read.
    """
    if not path.is_dir():
        return hash_file(path)
    pairs = [[relative, _entry(path / relative)] for relative in sorted(_names(path))]
    return sha256_bytes(canonical_json(pairs))


def hash_file(path: Path) -> str:
    """SHA-256 of a regular file's bytes; a link given by name is followed. Errors as
    `hash_path`."""
    digest = hashlib.sha256()
    with open_regular(path) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def open_regular(path: Path, *, follow: bool = True) -> BinaryIO:
    """A binary stream of a regular file; a pipe is refused instead of waited for."""
    flags = os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError as error:
        raise NotFoundError(
            f"{path} does not exist.", hint="Check the path.", code="file_missing"
        ) from error
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}.", hint="Check its permissions."
        ) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UsageError(
            f"{path} is not a regular file.", hint="Remove it, or put a file in its place."
        )
    return os.fdopen(descriptor, "rb")


def linked(root: Path, path: Path) -> Path | None:
    """The first symbolic link between `root` and `path`, `path` included; None without one."""
    here = root
    for part in path.relative_to(root).parts:
        here = here / part
        if here.is_symlink():
            return here
    return None


def _names(root: Path) -> Iterator[str]:
    for folder, directories, files in os.walk(root):
        links = [name for name in directories if os.path.islink(os.path.join(folder, name))]
        for name in (*files, *links):
            yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def _entry(path: Path) -> str:
    if path.is_symlink():
        return sha256_bytes(b"link:" + os.fsencode(os.readlink(path)))
    return hash_file(path)
