"""Engines: where the supervisor of a seed runs, with its training beside it.

A launcher starts a command that its supervisor watches from the same machine. An engine puts that
supervisor itself on a machine of its own choice, so every rule of a run holds there as here: both
sides share the project and the state directory.
"""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from harness.domain.launch_options import LOCAL, RAY, SLURM, TORCHRUN
from harness.errors import ConfigError
from harness.runs.launchers.on_node import Watch
from harness.settings import CONFIG, Settings

ENGINES = {
    LOCAL: "harness.runs.launchers.cards:CardsEngine",
    SLURM: "harness.runs.launchers.slurm:SlurmEngine",
    RAY: "harness.runs.launchers.ray_cluster:RayEngine",
}
"""Name in config.toml -> module and class."""


NAMES = (*ENGINES, TORCHRUN)
"""What --launcher takes."""


class Placed(Protocol):
    """One supervisor that an engine was given."""

    @property
    def job(self) -> str:
        """Its name at the engine."""
        ...

    def lost(self) -> bool:
        """Whether the engine will never run it, or never again."""
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
