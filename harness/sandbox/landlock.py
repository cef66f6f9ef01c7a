"""The second sandbox: Landlock rules, set by an unprivileged process upon itself. Linux 6.7 or
newer, no packages.

Files that are not granted can be neither read nor written, and TCP reaches one port or none. It
does not stop:
* writing to a read_only path below a writable one (rules add up; hooks and audits see to those);
* seeing names, sizes and times of files, nor chmod, chown and utime on them where the file's owner
  may;
* UDP, connecting to UNIX sockets that have a path, and the gateway's port number on another host;
* reading other processes' command lines, /dev/shm, and what is granted (all of /etc and /usr);
* below Linux 6.12 (ABI 6): signals to processes of the same user and abstract UNIX sockets. There
  is no private /tmp: give a writable path as TMPDIR. `run` makes one where the environment has
  none.
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.domain.sandbox import Completed, Confinement
from harness.domain.statuses import SandboxKind
from harness.errors import SandboxError
from harness.sandbox.process import GRACE_S, behind_front, program, run_process
from harness.sandbox.reach import Access, Grant, accelerators, grants, require_visible

DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
)


class Landlock:
    """A Sandbox. Every `command` dies with its caller and leaves no process behind."""

    @property
    def kind(self) -> SandboxKind:
        return SandboxKind.LANDLOCK

    def command(
        self, argv: Sequence[str], confinement: Confinement, *, memory_bytes: int | None = None
    ) -> list[str]:
        return behind_front(
            _confined(argv, confinement, grants(argv, confinement)), memory=memory_bytes
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
        with tempfile.TemporaryDirectory(
            prefix="harness-sandbox-", ignore_cleanup_errors=True
        ) as scratch:
            if "TMPDIR" not in environment:
                confinement = replace(confinement, writable=(*confinement.writable, Path(scratch)))
                environment = {**environment, "TMPDIR": scratch}
            given = grants(argv, confinement)
            require_visible(cwd, given)
            command = behind_front(
                _confined(argv, confinement, given), grace=GRACE_S, memory=memory_bytes
            )
            return run_process(command, cwd=cwd, environment=environment, timeout_s=timeout_s)


def _confined(argv: Sequence[str], confinement: Confinement, given: list[Grant]) -> list[str]:
    """Raises SandboxError when a hidden path lies below a granted one, which Landlock cannot
    express."""
    if not argv:
        raise SandboxError("There is no command to confine.", hint="Give at least one word.")
    if hidden := [grant.path for grant in given if grant.access is Access.HIDE]:
        raise SandboxError(
            f"Landlock cannot hide {hidden[0]}, because a folder above it is readable in the"
            " sandbox.",
            hint=(
                "Move the state directory (XDG_STATE_HOME) out of that folder, or install"
                " bubblewrap."
            ),
            code="sandbox_cannot_hide",
        )
    reading = {str(grant.source) for grant in given if grant.access is not Access.WRITE}
    spec = {
        "read_only": sorted(reading | {"/proc"}),
        "writable": sorted({str(grant.source) for grant in given if grant.access is Access.WRITE}),
        "devices": [name for name in (*DEVICES, *map(str, accelerators())) if os.path.exists(name)],
        "port": confinement.gateway_port,
    }
    return [*program("landlock_exec.py"), json.dumps(spec), *argv]
