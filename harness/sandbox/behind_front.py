"""Running a command behind front.py; sandboxes differ only in how they wrap it."""

import json
import os
import secrets
import sys
import tempfile
import time
from abc import (
    ABC,
    abstractmethod,
)
from collections.abc import (
    Mapping,
    Sequence,
)
from dataclasses import replace
from pathlib import Path

from harness import process
from harness.domain.commands import (
    put_aside,
    taken_up,
)
from harness.domain.sandbox import (
    Completed,
    Confinement,
)
from harness.domain.statuses import SandboxKind
from harness.errors import SandboxError

OUTPUT_LIMIT = 1 << 20
GRACE_S = 2.0
MARKER = "HARNESS_SANDBOX_MARKER"
"""In the environment of everything that one `run` starts."""
PYTHON = os.path.realpath(sys.executable)
HERE = Path(__file__).resolve().parent


def program(name: str) -> list[str]:
    """The command of one of the self-contained programs beside this file."""
    return [PYTHON, "-I", "-S", str(HERE / name)]


def behind_front(
    argv: Sequence[str],
    *,
    grace: float = 10.0,
    memory: int | None = None,
    gateway: int | None = None,
) -> list[str]:
    """`argv` behind front.py, which explains the three settings."""
    settings = json.dumps({"grace": grace, "memory": memory, "gateway": gateway})
    return [*program("front.py"), settings, *argv]


class FrontedSandbox(ABC):
    """A Sandbox whose commands die with their caller and leave no process behind."""

    PRIVATE_TMP = True
    """Whether a command finds a temporary folder without being given one."""

    @property
    @abstractmethod
    def kind(self) -> SandboxKind: ...

    @abstractmethod
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
        """The confined command behind front.py, inside with the words `first` before it. Raises
        SandboxError when it cannot see `cwd`."""

    def command(
        self,
        argv: Sequence[str],
        confinement: Confinement,
        *,
        environment: Mapping[str, str],
        memory_bytes: int | None = None,
    ) -> list[str]:
        require_words(argv)
        first = taken_up(environment)
        return self.wrap(argv, confinement, cwd=None, grace=10.0, memory=memory_bytes, first=first)

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
        require_words(argv)
        with tempfile.TemporaryDirectory(
            prefix="harness-sandbox-", ignore_cleanup_errors=True
        ) as scratch:
            if not self.PRIVATE_TMP and "TMPDIR" not in environment:
                confinement = replace(confinement, writable=(*confinement.writable, Path(scratch)))
                environment = {**environment, "TMPDIR": scratch}
            command = self.wrap(
                argv,
                confinement,
                cwd=cwd,
                grace=GRACE_S,
                memory=memory_bytes,
                first=taken_up(environment),
            )
            outside = put_aside(environment)
            return _run(command, cwd=cwd, environment=outside, timeout_s=timeout_s)


def require_words(argv: Sequence[str]) -> None:
    """Raises SandboxError for an empty command."""
    if not argv:
        raise SandboxError("There is no command to run.", hint="Give at least one word.")


def _run(
    command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], timeout_s: float
) -> Completed:
    begun = time.monotonic()
    try:
        finished = process.run(
            command,
            cwd=cwd,
            environment=environment,
            seconds=timeout_s,
            # Longer than the grace of front.py and its `kill_rest`: normally the guardian ends
            # everything, and the KILL that follows here finds nothing.
            grace=GRACE_S + 12,
            # The last resort: with the sandbox `none` a command can kill its guardian.
            mark=process.Mark(variable=MARKER, value=secrets.token_hex(16)),
            most_bytes=OUTPUT_LIMIT,
        )
    except OSError as error:
        raise SandboxError(
            f"{command[0]} cannot be started in {cwd}: {error}.", hint="Check that both exist."
        ) from error
    code = finished.code
    return Completed(
        exit_code=None if finished.timed_out else code if code >= 0 else 128 - code,
        stdout=finished.stdout,
        stderr=finished.stderr,
        timed_out=finished.timed_out,
        seconds=time.monotonic() - begun,
    )
