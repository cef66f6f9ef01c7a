"""The content of files, as bytes, text or hash."""

import codecs
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from harness.artifacts.looked import remembered
from harness.errors import HarnessError, NotFoundError, RefusedError, UsageError
from harness.files import atomic_write, canonical_json, folder_below, sha256_bytes

MAX_TEXT_BYTES = 64 << 20
"""Of a file that somebody writes by hand or fills in."""
_BLOCK = 1 << 20


def open_regular(path: Path, *, follow: bool = True, below: Path | None = None) -> BinaryIO:
    """A binary stream of a regular file; with `follow` False a symbolic link is refused, and with
    `below`, a folder above it, so is one on the way from there, also one that comes meanwhile.

    Raises NotFoundError when there is none, UsageError for anything else that cannot be read.
    """
    # O_NONBLOCK: opening a pipe that nobody writes to would block for ever. The type is checked on
    # the open descriptor, because the path may be replaced between a check and the open.
    flags = os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        if below is None:
            descriptor = os.open(path, flags)
        else:
            with folder_below(below, path.relative_to(below).parent.parts) as folder:
                descriptor = os.open(path.name, flags, dir_fd=folder)
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
            f"{path} is not a regular file.", hint="Name a file, or put one in its place."
        )
    return os.fdopen(descriptor, "rb")


def read_bytes(path: Path, *, limit: int | None = None) -> bytes:
    """The bytes of a regular file. Errors as `open_regular`; UsageError beyond `limit` bytes."""
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if limit is not None and size > limit:
            raise UsageError(
                f"{path} has {size:,} bytes; at most {limit:,} are read.",
                hint="Check that it is the right file.",
            )
        return stream.read()


def read_text(path: Path) -> str:
    """A whole text file; errors as `read_bytes` and `decode`."""
    return decode(read_bytes(path, limit=MAX_TEXT_BYTES), where=str(path))


def decode(data: bytes, *, where: str) -> str:
    """`data` as text with `\\n` line ends: UTF-8 with or without BOM, or UTF-16 with one.

    Raises UsageError with the line for other bytes and for NUL: nothing is replaced silently.
    """
    encoding = (
        "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    )
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{where}:{line}: byte {error.start} is not {encoding.removesuffix('-sig').upper()}.",
            hint="Save the file as UTF-8.",
            code="encoding",
        ) from error
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise UsageError(
            f"{where}:{line}: a NUL character.", hint="Save the file as UTF-8.", code="encoding"
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def hash_path(path: Path, *, at_block: Callable[[], None] = lambda: None) -> str:
    """SHA-256 of a file's bytes, or of a folder's sorted (relative path, SHA-256) pairs.

    A link in a folder counts by the text of its target; empty folders do not count. `at_block` is
    called before each block that is read, and may raise. Errors as `open_regular`.
    """
    if not path.is_dir():
        return hash_file(path, at_block=at_block)
    return folder_hash({name: _entry(path / name, at_block) for name in _names(path)})


def folder_hash(entries: Mapping[str, str]) -> str:
    """Of a folder, by the hash of each entry."""
    return sha256_bytes(canonical_json([[name, entries[name]] for name in sorted(entries)]))


def link_hash(path: Path) -> str:
    """Of a link: the text of its target."""
    return sha256_bytes(b"link:" + os.fsencode(os.readlink(path)))


def hash_file(path: Path, *, at_block: Callable[[], None] = lambda: None) -> str:
    """SHA-256 of a regular file's bytes; a link is followed. `at_block` as for `hash_path`, errors
    as `open_regular`."""
    return remembered(f"hash {path}", [path], lambda: _hash(path, at_block))


def _hash(path: Path, at_block: Callable[[], None]) -> str:
    digest = hashlib.sha256()
    with open_regular(path) as stream:
        at_block()
        while block := stream.read(_BLOCK):
            digest.update(block)
            at_block()
    return digest.hexdigest()


def linked(root: Path, path: Path) -> Path | None:
    """The first symbolic link between `root` and `path`, `path` included; None without one."""
    here = root
    for part in path.relative_to(root).parts:
        here = here / part
        if here.is_symlink():
            return here
    return None


def write_below(root: Path, path: Path, data: bytes | str) -> None:
    """Replace `path` in one step. Raises RefusedError (link_in_place) where a link leads on between
    `root` and `path`, also one that was put there since somebody looked."""
    try:
        atomic_write(path, data, below=root)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise RefusedError(
            f"{path} lies behind a link, or behind what is no folder; nothing is written there.",
            hint="Find out who put it there, and put a real folder in its place.",
            code="link_in_place",
        ) from error


def _names(root: Path) -> Iterator[str]:
    for folder, directories, files in os.walk(root):
        # os.walk lists a link to a folder among the folders and does not enter it.
        links = [name for name in directories if os.path.islink(os.path.join(folder, name))]
        for name in (*files, *links):
            yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def _entry(path: Path, at_block: Callable[[], None]) -> str:
    if path.is_symlink():
        return link_hash(path)
    return hash_file(path, at_block=at_block)


def content_hash(root: Path, relative: str) -> str | None:
    """Hash of a checkpoint as it is now; None when it is absent, linked, outside `root`, or cannot
    be read."""
    path = root / relative
    if ".." in Path(relative).parts or Path(relative).is_absolute():
        return None
    if linked(root, path) is not None:
        return None
    try:
        return hash_path(path)
    # Names that are no text are a ValueError, folders in folders without end a RuntimeError.
    except (HarnessError, OSError, ValueError, RuntimeError):
        return None
