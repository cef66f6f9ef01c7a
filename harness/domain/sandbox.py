"""The interface through which the harness runs an agent's code; harness.sandbox implements it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from harness.domain.late import Late, dataclass
from harness.domain.memory import granted_memory
from harness.domain.statuses import SandboxKind

MEMORY_SHARE = 0.9


def machine_share(root: Path = Path("/")) -> int:
    """Bytes that one process of training or predict may allocate by default."""
    # Below what is granted: it fails with a MemoryError before the kernel kills any process it
    # likes.
    return int(MEMORY_SHARE * granted_memory(root))


@dataclass(frozen=True, kw_only=True)
class Placed(Late):
    """What lies at `source` is seen at `path`: with bwrap. Landlock moves nothing; there, and
    without a sandbox, it is granted where it lies."""

    path: Path
    source: Path
    """Resolved: a link in it is refused, for it came later."""
    writable: bool = False


@dataclass(frozen=True, kw_only=True)
class Confinement(Late):
    """What a process may reach. Paths are absolute; what is not listed does not exist for it, but
    for the system's own folders (/usr, /lib, /etc, /proc, /dev ...) and the interpreters."""

    writable: tuple[Path, ...] = ()
    read_only: tuple[Path, ...] = ()
    """Also takes writing away below a writable folder (bwrap only: landlock rules add up)."""
    placed: tuple[Placed, ...] = ()
    """Stands before a path of the same name in `writable` and `read_only`."""
    hidden: tuple[Path, ...] = ()
    """Empty inside, even below a listed path (bwrap; landlock refuses that)."""
    gateway_port: int | None = None
    """The one loopback TCP port it may connect to; None is no network at all."""
    network: bool = False
    """The network as the machine has it: for a person's own session, never for agents' code."""


@dataclass(frozen=True, kw_only=True)
class Completed(Late):
    exit_code: int | None
    """None when it was ended by a limit."""
    stdout: bytes
    stderr: bytes
    timed_out: bool
    seconds: float


class Sandbox(Protocol):
    @property
    def kind(self) -> SandboxKind: ...

    def command(
        self,
        argv: Sequence[str],
        confinement: Confinement,
        *,
        environment: Mapping[str, str],
        memory_bytes: int | None = None,
    ) -> list[str]:
        """The argv that runs `argv` confined, each process with RLIMIT_DATA `memory_bytes`.
        `environment` is what it will be started with, after `commands.put_aside`."""
        ...

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
        """Run to the end or the limit; then nothing that it started is left running. `environment`
        is all that it gets. Output beyond 1 MiB a stream is cut."""
        ...
