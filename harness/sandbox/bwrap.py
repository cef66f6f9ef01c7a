"""The strongest sandbox: bubblewrap. Only granted paths exist, with a process and a network
namespace of its own.

It does not stop: reading what is granted (all of /etc and /usr), filling the disk below writable
paths or half the memory through /tmp, or a fault in the kernel. The network namespace has nothing
but its own loopback; the gateway's port in it is joined to the gateway outside by front.py, so no
other service of the machine can be reached, whatever its port.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.domain.sandbox import Completed, Confinement
from harness.domain.statuses import SandboxKind
from harness.errors import SandboxError
from harness.sandbox.process import GRACE_S, behind_front, program, run_process
from harness.sandbox.reach import Access, Grant, accelerators, grants, require_visible

NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net")
LIFE = ("--die-with-parent", "--new-session", "--cap-drop", "ALL")
BASE = ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")


class Bwrap:
    """A Sandbox. Every `command` dies with its caller and leaves no process behind."""

    def __init__(self, executable: str | None = None) -> None:
        self._executable = executable or shutil.which("bwrap") or "bwrap"

    @property
    def kind(self) -> SandboxKind:
        return SandboxKind.BWRAP

    def command(
        self, argv: Sequence[str], confinement: Confinement, *, memory_bytes: int | None = None
    ) -> list[str]:
        return self._command(
            argv, confinement, grants(argv, confinement), grace=10.0, memory=memory_bytes
        )

    def run(
        self,
        argv: Sequence[str],
        *,
        confinement: Confinement,
        cwd: Path,
        environment: Mapping[str, str],
        timeout_s: float,
        memory_bytes: int | None = None,
    ) -> Completed:
        given = grants(argv, confinement)
        require_visible(cwd, given, private=Path("/tmp"))
        command = self._command(argv, confinement, given, grace=GRACE_S, memory=memory_bytes)
        return run_process(command, cwd=cwd, environment=environment, timeout_s=timeout_s)

    def _command(
        self,
        argv: Sequence[str],
        confinement: Confinement,
        given: list[Grant],
        *,
        grace: float,
        memory: int | None,
    ) -> list[str]:
        if not argv:
            raise SandboxError("There is no command to confine.", hint="Give at least one word.")
        port = confinement.gateway_port
        inner = list(argv) if port is None else [*program("gateway_listen.py"), str(port), *argv]
        sandboxed = [self._executable, *NAMESPACES, *LIFE, *BASE, *_mounts(given), "--", *inner]
        return behind_front(sandboxed, grace=grace, memory=memory, gateway=port)


def _mounts(given: Sequence[Grant]) -> list[str]:
    """Mounts in the grants' order; what is not granted lies in an empty root that is then made
    read-only.

    So is /proc: root without capabilities could write /proc/sys, and core_pattern there starts
    programs outside.
    """
    words: list[str] = []
    sealed: list[str] = []
    for device in accelerators():
        words += ["--dev-bind", str(device), str(device)]
    for grant in given:
        path = str(grant.path)
        if grant.access is Access.HIDE and not grant.source.is_dir():
            words += ["--ro-bind", "/dev/null", path]
        elif grant.access is Access.HIDE:
            words += ["--tmpfs", path]
            sealed += ["--remount-ro", path]
        elif (
            grant.access is Access.SYSTEM
            and grant.path.is_symlink()
            and grant.path.parent == Path("/")
        ):
            words += [
                "--symlink",
                str(grant.path.readlink()),
                path,
            ]  # /bin -> usr/bin, as the system has it
        else:
            words += [
                "--bind" if grant.access is Access.WRITE else "--ro-bind",
                str(grant.source),
                path,
            ]
    return [*words, *sealed, "--remount-ro", "/proc", "--remount-ro", "/"]
