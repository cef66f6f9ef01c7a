"""What a disk refused, as an error that names the path, its disk and the next step."""

import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.errors import HarnessError, UsageError

LITTLE = 1 << 20
"""Bytes: a disk with less room is full."""
_LOST = "What was recorded before stands; run the command again then."
_ENVIRONMENT = ("ENOSPC", "EDQUOT", "EROFS", "ENOLCK", "EIO", "ESTALE", "EACCES", "EPERM")
_NOT_A_FILE = ("EISDIR", "ENOTDIR", "ENXIO", "ELOOP")
_CODES = {
    "ENOSPC": ("disk_full", "Free some space there, or move what may lie elsewhere."),
    "EDQUOT": ("disk_quota", "Your quota there is used up: remove files, or ask for more."),
    "EROFS": ("disk_read_only", "It is mounted read-only: mount it writable, or work in a copy."),
    "ENOLCK": (
        "disk_no_locks",
        "It gives no locks: set XDG_STATE_HOME to a folder of a local disk.",
    ),
    "EIO": ("disk_failed", "The disk fails: look at its log, and copy what you need away."),
    "ESTALE": ("disk_failed", "The network disk is gone: mount it again."),
    "EACCES": ("path_forbidden", "Give yourself the right to it, or its folder."),
    "EPERM": ("path_forbidden", "Give yourself the right to it, or its folder."),
}


def disk_error(error: OSError, environment: Mapping[str, str]) -> HarnessError | None:
    """None for an error that says nothing about a disk or what lies in a file's place."""
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
    if name not in _ENVIRONMENT:
        return None
    code, next_step = _CODES[name]
    if path is not None:
        message = f"{path} cannot be read or written: {said}. It lies on {_disk(path)}."
    else:
        disks = list(dict.fromkeys(_suspects(name, environment)))
        message = f"A file cannot be read or written: {said}. It lies on {' or '.join(disks)}."
    return HarnessError(message, hint=f"{next_step} {_LOST}", code=code)


def _path(error: OSError) -> Path | None:
    name = error.filename
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    return Path(name) if isinstance(name, str) and name else None


def _suspects(name: str, environment: Mapping[str, str]) -> Iterator[str]:
    """The disks that the harness writes to; of a full one's error only the full ones, if any."""
    home = Path(environment.get("HOME") or "~").expanduser()
    state = environment.get("XDG_STATE_HOME") or home / ".local" / "state"
    places = [Path.cwd(), Path(state), Path(environment.get("TMPDIR") or "/tmp")]
    full = [place for place in places if _free(place) < LITTLE] if name == "ENOSPC" else []
    for place in full or places:
        yield _disk(place)


def _disk(path: Path) -> str:
    free = _free(path)
    return f"the disk {_mount(path)} ({free / 1e6:,.0f} MB free)"


def _mount(path: Path) -> Path:
    place = _there(path)
    while not os.path.ismount(place) and place != place.parent:
        place = place.parent
    return place


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
