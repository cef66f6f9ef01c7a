"""Which file systems can be trusted with locks, and how to wait for one."""

import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy.exc import DBAPIError

from harness.clock import Clock

T = TypeVar("T")

NETWORK_TYPES = frozenset(
    {"9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre"}
)
NETWORK_TYPES |= {
    "ncpfs",
    "nfs",
    "nfs3",
    "nfs4",
    "orangefs",
    "pvfs2",
    "smb",
    "smb2",
    "smb3",
    "smbfs",
    "virtiofs",
    "webdav",
}
NETWORK_TYPES |= {"fuse.ceph", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"}
_OCTAL = re.compile(r"\\([0-7]{3})")


def network_type(path: Path, mounts: str | None = None) -> str | None:
    """The type of the network file system that `path` lies on, or None for a local one.

    Reads /proc/mounts; where there is none (macOS) every disk counts as local. `mounts` replaces
    its text in tests.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/mounts").read_text("utf-8", errors="replace")
        except OSError:
            return None
    target = path if path.is_absolute() else path.absolute()
    best, found = -1, None
    for line in mounts.splitlines():
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), parts[1]))
        if (
            target.is_relative_to(point) and len(point.parts) >= best
        ):  # later mounts hide earlier ones
            best, found = len(point.parts), parts[2]
    return found if found in NETWORK_TYPES else None


def retry_busy(
    attempt: Callable[[], T],
    *,
    is_busy: Callable[[BaseException], bool],
    clock: Clock,
    seconds: float,
) -> T:
    """Call `attempt` until it does not raise a busy error, or `seconds` have passed; then that
    error is raised.

    The pauses are random (2 to 50 ms) so that many waiting processes do not wake in step.
    """
    end = clock.monotonic() + seconds
    while True:
        try:
            return attempt()
        except DBAPIError as error:
            if not is_busy(error) or clock.monotonic() >= end:
                raise
        clock.sleep(0.002 + secrets.randbelow(48) / 1000)
