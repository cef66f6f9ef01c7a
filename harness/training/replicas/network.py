"""A network of their own for replicas: torchft's ports are open to whoever reaches the machine, and
ask nobody who he is."""

import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import struct
from pathlib import Path

from harness.errors import RefusedError

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_GET_FLAGS, _SET_FLAGS = 0x8913, 0x8914
_UP = 1
_REQUEST = "16sh14x"


def reachable_interfaces() -> list[str]:
    """Those that are up, but the loopback: by these another machine could come."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        names = [name for _, name in socket.if_nameindex()]
        return [name for name in names if name != "lo" and _flags(asked, name) & _UP]


def require_alone(*, accepted: bool) -> None:
    """Raises RefusedError (open_ports) where a port that is opened now could be reached from other
    machines."""
    if accepted or not (found := reachable_interfaces()):
        return
    raise RefusedError(
        f"The replicas' ports could be reached by {', '.join(found)}: whoever connects could read"
        " weights or send others.",
        hint="Start it in a sandbox with a network of its own (`--sandbox bwrap`); or set"
        " distributed.open_ports to true in config.yaml where nobody else reaches this machine.",
        code="open_ports",
    )


def enter_own() -> bool:
    """Leave the machine's network for a new one that has only its loopback. Before any thread is
    started; False where the system does not let us."""
    if not reachable_interfaces():
        return True
    user, group = os.geteuid(), os.getegid()
    if not _unshare(_NEW_NET):
        if not _unshare(_NEW_USER | _NEW_NET):
            return False
        with contextlib.suppress(OSError):  # gone where the kernel is old
            Path("/proc/self/setgroups").write_text("deny", "ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", "ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", "ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        request = struct.pack(_REQUEST, b"lo", _flags(asked, "lo") | _UP)
        fcntl.ioctl(asked, _SET_FLAGS, request)
    return True


def _flags(asked: socket.socket, name: str) -> int:
    try:
        answer = fcntl.ioctl(asked, _GET_FLAGS, struct.pack(_REQUEST, name.encode(), 0))
    except OSError as error:
        if error.errno == errno.ENODEV:  # it went away meanwhile
            return 0
        raise
    return int(struct.unpack(_REQUEST, answer)[1])


def _unshare(what: int) -> bool:
    return int(ctypes.CDLL(None).unshare(what)) == 0
