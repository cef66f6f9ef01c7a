"""No isolation: limits of time, memory and output only. What was scored this way is marked `not
isolated`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.domain.sandbox import Completed, Confinement
from harness.domain.statuses import SandboxKind
from harness.errors import SandboxError
from harness.sandbox.process import GRACE_S, behind_front, run_process


class NoSandbox:
    """A Sandbox that confines nothing; `run` still leaves no process behind, unless one hides on
    purpose."""

    @property
    def kind(self) -> SandboxKind:
        return SandboxKind.NONE

    def command(
        self, argv: Sequence[str], confinement: Confinement, *, memory_bytes: int | None = None
    ) -> list[str]:
        """`argv` itself: it neither dies with the caller nor is anything out of its reach.

        With `memory_bytes` a shell sets the limit, unless a lower one holds already, and becomes
        the command.
        """
        if not argv:
            raise SandboxError("There is no command to run.", hint="Give at least one word.")
        if memory_bytes is None:
            return list(argv)
        return [
            "/bin/sh",
            "-c",
            f'ulimit -d {memory_bytes // 1024} 2>/dev/null; exec "$@"',
            "sh",
            *argv,
        ]

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
        command = behind_front(self.command(argv, confinement), grace=GRACE_S, memory=memory_bytes)
        return run_process(command, cwd=cwd, environment=environment, timeout_s=timeout_s)
