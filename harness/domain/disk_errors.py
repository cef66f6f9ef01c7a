"""What a disk refused, as an error that names the path, its disk and the next step."""

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.domain.late import later
from harness.errors import HarnessError, UsageError

if TYPE_CHECKING:
    import tempfile
else:
    tempfile = later("tempfile")

LITTLE = 1 << 20
"""Bytes: a disk with less room is full."""
_SMALL = 1 << 16
_LOST = "What was recorded before stands; run the command again then."
_NOT_A_FILE = ("EISDIR", "ENOTDIR", "ENXIO", "ELOOP")
_CODES = {
    "ENOSPC": ("disk_full", "Free some space there, or move what may lie elsewhere."),
    "EDQUOT": ("disk_quota", "Your quota there is used up: remove files, or ask for more."),
    "EROFS": ("disk_read_only", "It is mounted read-only: mount it writable, or work in a copy."),
    "ENOLCK": (
        "disk_no_locks",
        "It gives no locks: set XDG_STATE_HOME to a folder of a local disk.",
    ),
    "EFBIG": (
        "file_too_large",
        "The shell or the disk limits how large a file may be: see `ulimit -f`.",
    ),
    "EIO": ("disk_failed", "The disk fails: look at its log, and copy what you need away."),
    "ESTALE": ("disk_failed", "The network disk is gone: mount it again."),
    "EACCES": ("path_forbidden", "Give yourself the right to it, or its folder."),
    "EPERM": ("path_forbidden", "Give yourself the right to it, or its folder."),
}


def disk_error(error: OSError, places: Sequence[Path]) -> HarnessError | None:
    """None for an error that says nothing about a disk or what lies in a file's place.

    `places`: folders whose disks are meant where the error names no path.
    """
    name = errno.errorcode.get(error.errno or 0, "")
    said = error.strerror or str(error)
    path = _path(error)
    if name in _NOT_A_FILE:
        where = "A path" if path is None else f"{path}"
        return UsageError(
            f"{where} is not what was expected there: {said}.",
            hint="Move away what lies in its place. " + _LOST,
            code="path_not_a_file",
        )
    if name not in _CODES:
        return None
    code, next_step = _CODES[name]
    where = "A file" if path is None else f"{path}"
    disks = dict.fromkeys([path] if path is not None else _suspects(name, places))
    on = " or ".join(dict.fromkeys(disk_of(place) for place in disks))
    return HarnessError(
        f"{where} cannot be read or written: {said}. It lies on {on}.",
        hint=f"{next_step} {_LOST}",
        code=code,
    )


def written_to(environment: Mapping[str, str]) -> list[Path]:
    """The folders that the harness writes to, the project's first."""
    home = Path(environment.get("HOME") or "~").expanduser()
    state = environment.get("XDG_STATE_HOME") or home / ".local" / "state"
    return [Path.cwd(), Path(state), Path(environment.get("TMPDIR") or "/tmp")]


def refusal(folder: Path) -> OSError | None:
    """What the disk of `folder` answers to a small file that is locked and written, then removed:
    for who was told of a failure without its number, or with a wrong one."""
    try:
        descriptor, path = tempfile.mkstemp(dir=folder, prefix=".room.")
    except OSError as error:
        return error
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(descriptor, bytes(_SMALL), 0)
        os.fsync(descriptor)
    except OSError as error:
        error.filename = str(folder)
        return error
    finally:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            os.unlink(path)
    return None


def disk_of(path: Path) -> str:
    """E.g. "the disk /home (12 MB free)"."""
    free = _free(path)
    return f"the disk {_mount(path)} ({free / 1e6:,.0f} MB free)"


def _path(error: OSError) -> Path | None:
    name = error.filename
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    return Path(name) if isinstance(name, str) and name else None


def _suspects(name: str, places: Sequence[Path]) -> list[Path]:
    """Of a full disk's error only the full ones, if any."""
    full = [place for place in places if _free(place) < LITTLE] if name == "ENOSPC" else []
    return full or list(places)


def _mount(path: Path) -> Path:
    """Where the file system of `path` begins, also one that is a folder of another, mounted read
    only."""
    place = _there(path)
    above = [mount for mount in _mounts() if place.is_relative_to(mount)]
    if above:
        return max(above, key=lambda mount: len(mount.parts))
    while not os.path.ismount(place) and place != place.parent:
        place = place.parent
    return place


def _mounts() -> list[Path]:
    """As Linux lists them, proc(5): blanks are written as octal numbers; none elsewhere."""
    try:
        lines = Path("/proc/self/mounts").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    names = (line.split(" ")[1] for line in lines)
    return [Path(re.sub(r"\\([0-7]{3})", lambda one: chr(int(one[1], 8)), name)) for name in names]


def _free(path: Path) -> int:
    """Bytes; 0 where no further file fits in either."""
    try:
        known = os.statvfs(_there(path))
    except OSError:
        return 0
    inodes_spent = known.f_files > 0 and known.f_favail == 0
    return 0 if inodes_spent else known.f_bavail * known.f_frsize


def _there(path: Path) -> Path:
    """`path`, or the nearest folder above it that exists."""
    place = Path(os.path.realpath(path))
    while not place.exists() and place != place.parent:
        place = place.parent
    return place
