"""The strongest sandbox: bubblewrap. Only granted paths exist, in process and network namespaces of
its own.

It does not stop: reading what is granted (all of /etc and /usr), filling the disk below writable
paths or half the memory through /tmp, or a fault in the kernel. The network namespace has only its
own loopback; front.py joins the gateway's port in it to the gateway outside.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from harness.domain.sandbox import Confinement
from harness.domain.statuses import SandboxKind
from harness.process import system_program
from harness.sandbox.behind_front import (
    FrontedSandbox,
    behind_front,
    program,
)
from harness.sandbox.reach import (
    Access,
    Grant,
    accelerators,
    grants,
    require_visible,
)

NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts")
NO_NETWORK = ("--unshare-net",)
LIFE = ("--die-with-parent", "--new-session", "--cap-drop", "ALL")
BASE = ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")


class Bwrap(FrontedSandbox):
    def __init__(self, executable: str | None = None) -> None:
        self._executable = executable or system_program("bwrap") or "/usr/bin/bwrap"

    @property
    def kind(self) -> SandboxKind:
        return SandboxKind.BWRAP

    def wrap(
        self,
        argv: Sequence[str],
        confinement: Confinement,
        *,
        cwd: Path | None,
        grace: float,
        memory: int | None,
        first: Sequence[str] = (),
    ) -> list[str]:
        granted = grants(argv, confinement)
        if cwd is not None:
            require_visible(cwd, granted, private=Path("/tmp"))
        port = confinement.gateway_port
        inner = [*first, *argv]
        if port is not None:
            inner = [*program("gateway_listen.py"), str(port), *inner]
        held = {str(one.path): one.held for one in granted if one.held is not None}
        inner = [*program("as_granted.py"), json.dumps(held), *inner]
        mounts = _mounts(granted)
        namespaces = NAMESPACES if confinement.network else (*NAMESPACES, *NO_NETWORK)
        sandboxed = [self._executable, *namespaces, *LIFE, *BASE, *mounts, "--", *inner]
        return behind_front(sandboxed, grace=grace, memory=memory, gateway=port)


def _mounts(granted: Sequence[Grant]) -> list[str]:
    """Mounts in the grants' order, on an empty, read-only root."""
    words: list[str] = []
    sealed: list[str] = []
    for device in accelerators():
        words += ["--dev-bind", str(device), str(device)]
    for grant in granted:
        path = str(grant.path)
        is_root_link = grant.path.is_symlink() and grant.path.parent == Path("/")
        if grant.access is Access.HIDE and not grant.source.is_dir():
            words += ["--ro-bind", "/dev/null", path]
        elif grant.access is Access.HIDE:
            words += ["--tmpfs", path]
            sealed += ["--remount-ro", path]
        elif grant.access is Access.SYSTEM and is_root_link:
            # /bin -> usr/bin, as the system has it
            words += ["--symlink", str(grant.path.readlink()), path]
        else:
            bind = "--bind" if grant.access is Access.WRITE else "--ro-bind"
            words += [bind, str(grant.source), path]
    # Remounts come last, since a mount point inside a read-only folder could not be made. /proc is
    # one of them: root without capabilities could write /proc/sys, and core_pattern there starts
    # programs outside.
    return [*words, *sealed, "--remount-ro", "/proc", "--remount-ro", "/"]
