"""Many new objects of the vault at once, made durable with one sync.

All are written under other names, then the file system is synced, then they get their names: after
a kill or a power cut an object is whole or not there. What a killed batch left is removed by the
next one.
"""

import contextlib
import ctypes
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from harness.artifacts.content import open_regular
from harness.files import lock, make_folder, sha256_bytes, sync_directory

_BLOCK = 1 << 20
_WHOLE = 8 << 20
"""Bytes of a file that is read at once."""


class ObjectBatch:
    """Used as a context manager: objects get their names when the block ends without an error."""

    def __init__(self, objects: Path) -> None:
        self._objects = objects
        self._incoming = objects.with_name(f"{objects.name}.incoming")
        self._folder: Path | None = None
        self._new: set[str] = set()
        self._held: set[str] | None = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._stack:
            if error is None and self._folder is not None:
                self._name(self._folder)

    def add(self, data: bytes) -> str:
        """Store `data` and return its hash."""
        name = sha256_bytes(data)
        if not self._is_there(name, len(data)):
            self._write(name, data)
        return name

    def add_file(self, path: Path, *, below: Path) -> str:
        """Store a regular file's bytes and return their hash; a link is refused, also one between
        the folder `below` and the file. Errors as `content.open_regular`."""
        with open_regular(path, follow=False, below=below) as stream:
            if os.fstat(stream.fileno()).st_size <= _WHOLE:
                return self.add(stream.read())
            digest, size = hashlib.sha256(), 0
            while block := stream.read(_BLOCK):
                digest.update(block)
                size += len(block)
            if self._is_there(digest.hexdigest(), size):
                return digest.hexdigest()
            # Hashed again while it is copied: it may have changed since.
            stream.seek(0)
            return self._copy(stream)

    def _is_there(self, name: str, size: int) -> bool:
        if self._held is None:
            make_folder(self._objects)
            self._held = set(os.listdir(self._objects))
        if name in self._new:
            return True
        # One of another size was damaged: it is written anew.
        return name in self._held and (self._objects / name).lstat().st_size == size

    def _write(self, name: str, data: bytes) -> None:
        target = self._place() / name
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o400)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        self._new.add(name)

    def _copy(self, stream: BinaryIO) -> str:
        folder, digest = self._place(), hashlib.sha256()
        descriptor, temporary = tempfile.mkstemp(dir=folder)
        with os.fdopen(descriptor, "wb") as copy:
            while block := stream.read(_BLOCK):
                digest.update(block)
                copy.write(block)
            os.fchmod(descriptor, 0o400)
        name = digest.hexdigest()
        os.replace(temporary, folder / name)
        self._new.add(name)
        return name

    def _place(self) -> Path:
        """The folder of this batch, locked while it lives; made when first needed."""
        if self._folder is None:
            make_folder(self._incoming)
            with lock(self._incoming / "lock"):
                for left in self._incoming.iterdir():
                    _remove_if_dead(left)
                self._folder = Path(tempfile.mkdtemp(dir=self._incoming))
                self._stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
                self._stack.enter_context(lock(self._folder))
        return self._folder

    def _name(self, folder: Path) -> None:
        _sync(folder, self._new)
        for name in self._new:
            os.replace(folder / name, self._objects / name)
        sync_directory(self._objects)


def _remove_if_dead(folder: Path) -> None:
    if folder.is_dir():
        with lock(folder, wait=False) as held:
            if held:
                shutil.rmtree(folder, ignore_errors=True)


def _sync(folder: Path, names: set[str]) -> None:
    """Bring the files to the disk: with one call where the system has it."""
    with contextlib.suppress(AttributeError):  # Linux alone has syncfs
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            if ctypes.CDLL(None).syncfs(descriptor) == 0:
                return
        finally:
            os.close(descriptor)
    for name in names:
        descriptor = os.open(folder / name, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
