"""Where runs take place. A new place is a file and a row of each table.

A launcher starts a command that its supervisor watches from the same machine. An engine puts that
supervisor itself on a machine of its own choice, so every rule of a run holds there as here: both
sides share the project and the state directory.
"""

import contextlib
import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import psutil

from harness.domain.late import Late, dataclass
from harness.domain.launch_options import LOCAL, RAY, SLURM, TORCHRUN
from harness.domain.records import Run
from harness.errors import ConfigError
from harness.ledger.project import Project
from harness.process import judge_environment
from harness.runs.launchers.on_node import Watch
from harness.settings import CONFIG, Settings

Handle = Mapping[str, Any]
"""Names a started command for any process, also after this one died: plain JSON, kept as a fact."""

LAUNCHERS = {
    LOCAL: "harness.runs.launchers.local:LocalLauncher",
    SLURM: "harness.runs.launchers.slurm:SlurmLauncher",
    RAY: "harness.runs.launchers.ray_cluster:RayLauncher",
}
"""Name in the facts -> module and class."""
ENGINES = {
    LOCAL: "harness.runs.launchers.cards:CardsEngine",
    SLURM: "harness.runs.launchers.slurm:SlurmEngine",
    RAY: "harness.runs.launchers.ray_cluster:RayEngine",
}
"""Name in config.toml -> module and class."""
NAMES = (*ENGINES, TORCHRUN)
"""What --launcher takes."""


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


class Placed(Protocol):
    """One supervisor that an engine was given."""

    @property
    def job(self) -> str:
        """Its name at the engine."""
        ...

    def lost(self) -> bool:
        """Whether the engine will never run it, or never again."""
        ...

    def said(self) -> str:
        """Of one that is lost: what the engine has of it, of which the end says most."""
        ...

    def cancel(self) -> None:
        """Take it out of the engine's hands, also while it waits."""
        ...


class Engine(Protocol):
    name: str
    most: int | None
    """Supervisors of one experiment at once; None: as many as the engine takes."""
    gpus: int
    """That each leases on its machine; 0 where the engine itself hands them out."""

    def submit(self, watch: Watch, *, title: str, minutes: float) -> Placed:
        """Raises HarnessError; then nothing was submitted."""
        ...

    def start(self, environment: Mapping[str, str]) -> None:
        """Make ready what several commands will share, until `close`: called by their loop."""
        ...

    def close(self) -> None: ...


def beside(settings: Settings) -> str:
    """The launcher of a command whose supervisor runs on the same machine."""
    chosen = settings.launcher or LOCAL
    return LOCAL if chosen in NAMES else chosen


def open_engine(
    settings: Settings,
    asked: str | None,
    inherited: Mapping[str, str],
    state: Path,
) -> Engine | None:
    """The engine that `asked` names, else config.toml; None where the supervisors run here, one
    after another. Raises ConfigError (launcher_unknown, launcher_not_allowed)."""
    name = asked or settings.launcher or LOCAL
    if asked is not None and name not in NAMES:
        names = ", ".join(NAMES)
        raise ConfigError(
            f"There is no launcher {name!r}; there is {names}.",
            hint="docs/launchers.md says what each does.",
            code="launcher_unknown",
        )
    options = settings.launchers.get(name)
    if name not in ENGINES or (name == LOCAL and not (options or {}).get("gpus")):
        return None
    if options is None and settings.launcher != name:
        raise ConfigError(
            f"{settings.root / CONFIG} does not allow the launcher {name}.",
            hint=f"A person writes the table `[launchers.{name}]` there; it may be empty.",
            code="launcher_not_allowed",
        )
    module, _, attribute = ENGINES[name].partition(":")
    made: Any = getattr(importlib.import_module(module), attribute)
    engine: Engine = made(options or {}, inherited=inherited, state=state)
    return engine


@contextlib.contextmanager
def engine_for(project: Project, asked: str | None) -> Iterator[Engine | None]:
    """What --launcher names, closed at the end. Raises as `open_engine`."""
    settings, state = project.settings, project.layout.state
    engine = open_engine(settings, asked, os.environ, state)
    try:
        yield engine
    finally:
        if engine is not None:
            engine.close()


@contextlib.contextmanager
def launching(project: Project, asked: str | None) -> Iterator[Project]:
    """`project` as a loop gets it: its supervisors are started with the launcher that was asked
    for, and what they share is there meanwhile. Raises as `open_engine`."""
    with engine_for(project, asked) as engine:
        if engine is not None:
            engine.start(judge_environment(os.environ))
        chosen = asked or project.settings.launcher
        yield replace(project, settings=replace(project.settings, launcher=chosen))
