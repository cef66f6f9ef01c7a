"""The second sandbox: Landlock rules that a process sets upon itself. Linux 6.7 or newer.

Files that are not granted can be neither read nor written, and TCP reaches one port or none. It
does not stop:
* writing to a read_only path below a writable one (rules add up; hooks and audits see to those);
* seeing names, sizes and times of files, nor chmod, chown and utime on them where the file's owner
  may;
* UDP, connecting to UNIX sockets that have a path, and the gateway's port number on another host;
* reading other processes' command lines, /dev/shm, and what is granted (all of /etc and /usr);
  terminals are not: but for the one that it is handed, none can be opened, so nobody makes one;
* below Linux 6.12 (ABI 6): signals to processes of the same user and abstract UNIX sockets. There
  is no private /tmp: `run` makes a folder and sets TMPDIR where the environment has none; a
  `command` needs a writable path as TMPDIR.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from harness.domain.sandbox import Confinement
from harness.domain.statuses import SandboxKind
from harness.errors import SandboxError
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

# Not /dev/pts: who opens a person's terminal there reads their keys and writes on their screen.
DEVICES = tuple(
    f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "shm")
)


class Landlock(FrontedSandbox):
    PRIVATE_TMP = False

    @property
    def kind(self) -> SandboxKind:
        return SandboxKind.LANDLOCK

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
        granted = grants(argv, confinement, moves=False)
        if cwd is not None:
            require_visible(cwd, granted)
        confined = _confined([*first, *argv], confinement, granted)
        return behind_front(confined, grace=grace, memory=memory)


def _confined(argv: Sequence[str], confinement: Confinement, granted: list[Grant]) -> list[str]:
    # Landlock rules only add rights: nothing can be hidden below a granted path.
    if hidden := [grant.path for grant in granted if grant.access is Access.HIDE]:
        raise SandboxError(
            f"Landlock cannot hide {hidden[0]}, because a folder above it is readable in the"
            " sandbox.",
            hint=(
                "Move the state directory (XDG_STATE_HOME) out of that folder, or install"
                " bubblewrap."
            ),
            code="sandbox_cannot_hide",
        )
    reading = {str(grant.source) for grant in granted if grant.access is not Access.WRITE}
    spec = {
        "read_only": sorted(reading | {"/proc"}),
        "writable": sorted(
            {str(grant.source) for grant in granted if grant.access is Access.WRITE}
        ),
        "devices": [
            name for name in (*DEVICES, *map(str, accelerators())) if os.path.exists(name)
        ],
        "held": {str(one.source): one.held for one in granted if one.held is not None},
        "port": confinement.gateway_port,
        "network": confinement.network,
    }
    return [*program("landlock_exec.py"), json.dumps(spec), *argv]
