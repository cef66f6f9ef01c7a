"""Launchers: where the commands of runs are started. A new one is a file and a row of the table."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import psutil

from harness.domain.late import Late, dataclass
from harness.domain.launch_options import LOCAL, RAY, SLURM
from harness.domain.records import Run
from harness.errors import ConfigError

Handle = Mapping[str, Any]
"""Names a started command for any process, also after this one died: plain JSON, kept as a fact."""

LAUNCHERS = {
    LOCAL: "harness.runs.launchers.local:LocalLauncher",
    SLURM: "harness.runs.launchers.slurm:SlurmLauncher",
    RAY: "harness.runs.launchers.ray_cluster:RayLauncher",
}
"""Name in the facts -> module and class."""


@dataclass(frozen=True, kw_only=True)
class RunCommand(Late):
    argv: Sequence[str]
    """Confined already."""
    cwd: Path
    environment: Mapping[str, str]
    """All of it; it holds the run's link token."""
    stdout: Path
    stderr: Path
    append: bool
    """The two files go on where an earlier attempt ended; else they are new."""


@dataclass(frozen=True, kw_only=True)
class KilledProcesses(Late):
    count: int
    left: int
    """Of these, those that could not be killed."""


class Launcher(Protocol):
    def submit(self, command: RunCommand) -> dict[str, Any]:
        """Start the command; returns its handle. Raises OSError or HarnessError; then nothing
        runs."""
        ...

    def poll(self, handle: Handle, *, seconds: float) -> int | None:
        """The exit code of a command that this object submitted, negative after a signal; None
        after `seconds`."""
        ...

    def signal(self, handle: Handle, number: int) -> None:
        """Send a signal to a command that this object submitted, with its process group."""
        ...

    def kill(self, handle: Handle, token_sha256: str) -> KilledProcesses:
        """Kill all that the command started, also when it has ended itself; from any process.

        The handle is empty when the supervisor died after `submit` and before the handle was a
        fact: then the run is known by its link token alone.
        """
        ...

    def output(self, handle: Handle, *, seconds: float) -> None:
        """Wait until the output is in the command's two files, at most `seconds`."""
        ...

    def processes(self, handle: Handle) -> list[psutil.Process]:
        """What runs of the command on this machine; nothing where it runs on another."""
        ...

    def lost(self, handle: Handle) -> bool:
        """Whether the command does not run any more and `poll` will never tell how it ended."""
        ...


def open_launcher(name: str) -> Launcher:
    """Raises ConfigError (launcher_unknown)."""
    if name not in LAUNCHERS:
        raise ConfigError(
            f"There is no launcher {name!r}; there is {', '.join(sorted(LAUNCHERS))}.",
            hint="Correct or remove `launcher` in .harness/config.toml.",
            code="launcher_unknown",
        )
    module, _, attribute = LAUNCHERS[name].partition(":")
    launcher: Launcher = getattr(importlib.import_module(module), attribute)()
    return launcher


def job_of(run: Run) -> tuple[Launcher, Handle]:
    """The launcher of a run and its handle, which is empty while its start is no fact."""
    name = LOCAL if run.job is None else run.job["launcher"]
    return open_launcher(name), run.handle


def is_alive(run: Run) -> bool:
    """Whether the run's command, as it was started, still runs."""
    launcher, handle = job_of(run)
    return bool(handle) and not launcher.lost(handle)
