"""No isolation: limits of time, memory and output only. A score is marked `not isolated`."""

from collections.abc import (
    Mapping,
    Sequence,
)
from pathlib import Path

from harness.domain.commands import taken_up
from harness.domain.sandbox import Confinement
from harness.domain.statuses import SandboxKind
from harness.sandbox.behind_front import (
    FrontedSandbox,
    behind_front,
    require_words,
)

_LIMITED = 'ulimit -d %d 2>/dev/null; exec "$@"'


class NoSandbox(FrontedSandbox):
    """A Sandbox that confines nothing; `run` still leaves no process behind, unless one hides on
    purpose."""

    @property
    def kind(self) -> SandboxKind:
        return SandboxKind.NONE

    def command(
        self,
        argv: Sequence[str],
        confinement: Confinement,
        *,
        environment: Mapping[str, str],
        memory_bytes: int | None = None,
    ) -> list[str]:
        """`argv` itself, without front.py: it does not die with its caller. A shell sets the memory
        limit, unless a lower one holds already, and becomes the command."""
        require_words(argv)
        argv = [*taken_up(environment), *argv]
        if memory_bytes is None:
            return argv
        return ["/bin/sh", "-c", _LIMITED % (memory_bytes // 1024), "sh", *argv]

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
        return behind_front([*first, *argv], grace=grace, memory=memory)
