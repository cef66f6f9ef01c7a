"""The vault's object store: each blob stored once, named by its SHA-256, verified when read."""

import fcntl
import hashlib
import os
from pathlib import Path
from typing import BinaryIO

from harness.artifacts.content import hash_file, open_regular
from harness.errors import HarnessError
from harness.files import atomic_write, replacing, sha256_bytes

_BLOCK = 1 << 20
_FICLONE = 0x40049409
"""Linux's ioctl; elsewhere it is refused like on a file system that cannot."""


class ObjectDamagedError(HarnessError):
    code = "object_damaged"


def store_bytes(data: bytes, objects: Path) -> str:
    """Store `data` and return its hash."""
    name = sha256_bytes(data)
    if not (objects / name).is_file():
        atomic_write(objects / name, data, mode=0o444)
    return name


def copy_verified(stream: BinaryIO, folder: Path, name: str | None, *, suffix: str = "") -> str:
    """Copy a stream into `folder` under its hash, synced, and return the hash.

    With `name`, raises ObjectDamagedError for another hash, and leaves no file.
    """
    digest = hashlib.sha256()
    with replacing(folder / "incoming", mode=0o444) as new:
        while block := stream.read(_BLOCK):
            digest.update(block)
            new.stream.write(block)
        actual = digest.hexdigest()
        if name is not None and actual != name:
            raise damaged(folder / (name + suffix), name, actual)
        new.path = folder / (actual + suffix)
    return actual


def copy_file(source: Path, folder: Path, sha256: str, *, suffix: str = "") -> Path:
    """Copy `source` to `folder/<sha256><suffix>`, or check the copy that is there.

    Raises ObjectDamagedError for another hash.
    """
    target = folder / f"{sha256}{suffix}"
    if target.is_file():
        check_object(target, sha256)
    else:
        with open_regular(source) as stream:
            copy_verified(stream, folder, sha256, suffix=suffix)
    return target


def lay_out(source: Path, target: Path, sha256: str, *, mode: int) -> None:
    """A new file `target` with the bytes of `source`, sharing its blocks where the file system can.

    Raises ObjectDamagedError unless the copy has the hash `sha256`; nothing is left then.
    """
    if not source.is_file():
        raise damaged(source, sha256, "missing")
    with open_regular(source) as reading:
        actual = copy_hashed(reading, target, mode=mode)
    if actual != sha256:
        target.unlink()
        raise damaged(source, sha256, actual)


def copy_hashed(reading: BinaryIO, target: Path, *, mode: int) -> str:
    """As `lay_out`, of any bytes; returns the hash of what the new file holds."""
    # Never a hard link: whoever writes to the copy would write to the source.
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "r+b") as writing:
        os.fchmod(descriptor, mode)
        digest = hashlib.sha256()
        shared = _share(reading, writing)
        while block := (writing if shared else reading).read(_BLOCK):
            digest.update(block)
            if not shared:
                writing.write(block)
    return digest.hexdigest()


def restore_object(objects: Path, sha256: str, source: Path) -> None:
    """Put a damaged or missing object back from a file that has its bytes. Errors as
    `copy_verified` and `open_regular`."""
    with open_regular(source, follow=False) as stream:
        copy_verified(stream, objects, sha256)


def _share(source: BinaryIO, target: BinaryIO) -> bool:
    """Whether `target` now is a copy-on-write copy of `source`."""
    try:
        fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
    except OSError:  # another file system, or one that cannot
        return False
    return True


def load_object(objects: Path, name: str) -> bytes:
    """The blob called `name`. Raises ObjectDamagedError when it is missing or has another hash."""
    path = objects / name
    if not path.is_file():
        raise damaged(path, name, "missing")
    data = path.read_bytes()
    if (actual := sha256_bytes(data)) != name:
        raise damaged(path, name, actual)
    return data


def check_object(path: Path, expected: str) -> None:
    """Raises ObjectDamagedError unless the file at `path` has the hash `expected`."""
    actual = hash_file(path) if path.is_file() else "missing"
    if actual != expected:
        raise damaged(path, expected, actual)


def damaged(path: Path, expected: str, actual: str) -> ObjectDamagedError:
    return ObjectDamagedError(
        f"The frozen file {path} has changed: expected SHA-256 {expected[:12]}, found"
        f" {actual[:12]}.",
        hint=(
            "Restore the state directory from a backup, or approve the plan and run the experiment"
            " again."
        ),
    )
