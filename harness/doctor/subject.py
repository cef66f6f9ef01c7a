"""What the doctor examines, read once: a project, its settings and the environment."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.contract.installation import MANIFEST, OWN_HOOKS, VENDORED
from harness.doctor.enclosing_session import EnclosingSession
from harness.doctor.hook_entries import Hook, hooks_of
from harness.doctor.settings_files import (
    MANAGED_FOLDER,
    PLUGIN,
    PROJECT,
    SettingsFile,
    settings_files,
)
from harness.domain.claude_folder import claude_folder
from harness.domain.statuses import HooksMode
from harness.errors import ConfigError, NotFoundError
from harness.guard.agent_files import has_own_hooks
from harness.guard.hooks.projects import SNAPSHOT, Projects, read_json
from harness.settings import CONFIG, load_settings

_DEPTH, _MOST_FOLDERS = 3, 2000


@dataclass(frozen=True, kw_only=True)
class DoctorSubject:
    start: Path
    """The folder in which `claude` is, or would be, started."""
    folder: Path
    """The folder in which it must be started to read the settings: the root or a worktree's top."""
    root: Path
    """The project's root; in a linked worktree without a project, the main worktree's."""
    environment: Mapping[str, str]
    home: Path
    files: tuple[SettingsFile, ...]
    """The settings that count, strongest first."""
    chosen: HooksMode | None = None
    """The `hooks` of config.toml."""
    plugin: Path | None = None
    """The plugin's folder, known only to processes of the plugin."""
    session: EnclosingSession | None = None
    """The enclosing session, if it is about this project."""
    had_receipts: bool = True
    """Whether the folder of receipts existed before."""

    @cached_property
    def mode(self) -> HooksMode:
        """How hooks reach a session: as config.toml says; else PROJECT if settings, snapshot or
        files show project hooks, even if some are missing."""
        if self.chosen is not None:
            return self.chosen
        value, _ = read_json(os.path.join(self.root, SNAPSHOT))
        named = isinstance(value, dict) and value.get("hooks") == HooksMode.PROJECT.value
        installed = os.path.isfile(self.folder / VENDORED / MANIFEST) or has_own_hooks(self.folder)
        return (
            HooksMode.PROJECT if named or installed or any(self.own(PROJECT)) else HooksMode.NONE
        )

    @property
    def source(self) -> str:
        """The settings that must have our entries."""
        return PLUGIN if self.mode is HooksMode.PLUGIN else PROJECT

    @property
    def hooks_folder(self) -> Path:
        """The folder of the programs."""
        if self.plugin is not None:
            return self.plugin / OWN_HOOKS
        return self.folder / (OWN_HOOKS if has_own_hooks(self.folder) else VENDORED)

    @cached_property
    def hooks(self) -> tuple[Hook, ...]:
        bare = has_own_hooks(self.folder)
        return tuple(
            hook
            for file in self.files
            for hook in hooks_of(file, bare=bare or file.source == PLUGIN)
        )

    def own(self, source: str | None = None) -> Iterator[Hook]:
        """Our hooks, of all settings files or of one."""
        return (
            hook
            for hook in self.hooks
            if hook.program is not None and source in (None, hook.file.source)
        )

    def installed(self) -> Iterator[Hook]:
        """Our hooks in the right settings file."""
        return self.own(self.source)

    def guards(self) -> Iterator[Hook]:
        return (hook for hook in self.installed() if hook.guard)

    def file(self, source: str) -> SettingsFile:
        """The first settings file of `source`."""
        return next(file for file in self.files if file.source == source)

    def shown(self, source: str) -> str:
        """The path of a source's settings, relative to the project where it is inside."""
        path = self.file(source).path
        return (
            path.relative_to(self.folder).as_posix()
            if path.is_relative_to(self.folder)
            else str(path)
        )


def look(
    start: Path,
    environment: Mapping[str, str],
    *,
    home: Path,
    managed_folder: Path = MANAGED_FOLDER,
    session: EnclosingSession | None = None,
) -> DoctorSubject:
    """The project that contains `start`, as `session` or a new session there sees it.

    Raises NotFoundError when no project is at or above `start`.
    """
    project = Projects().containing(str(start.resolve()))
    if project is None:
        raise NotFoundError(
            f"No harness project at or above {start.resolve()}: expected a folder with {CONFIG}.",
            hint="Run `harness init` in the repository, or pass `--project DIR`.",
            code="no_project",
        )
    folder = Path(project.root)
    if session is not None and not _meet(session.folder.resolve(), folder):
        session = None  # it works elsewhere
    root = Path(project.source)
    chosen = _chosen(root, environment)
    plugin_root = environment.get("CLAUDE_PLUGIN_ROOT")
    plugin = Path(plugin_root).resolve() if plugin_root and chosen is HooksMode.PLUGIN else None
    user_folder = claude_folder(environment, home)
    return DoctorSubject(
        start=(session.folder if session else start).resolve(),
        folder=folder,
        root=root,
        environment=environment,
        home=home,
        files=settings_files(folder, user_folder, managed_folder, plugin),
        chosen=chosen,
        plugin=plugin,
        session=session,
        had_receipts=os.path.isdir(project.receipts),
    )


def _chosen(root: Path, environment: Mapping[str, str]) -> HooksMode | None:
    with contextlib.suppress(
        ConfigError
    ):  # the ledger's check says what is wrong with config.toml
        return load_settings(root, environment).hooks
    return None


def projects_below(start: Path) -> list[Path]:
    """Projects at most three levels below `start`, as in a monorepo."""
    projects: list[Path] = []
    level = [start]
    for _ in range(_DEPTH):
        level = [path for folder in level for path in _folders(folder)][:_MOST_FOLDERS]
        projects += [path for path in level if os.path.isfile(path / CONFIG)]
    return projects


def _folders(folder: Path) -> list[Path]:
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return []
    return [
        path
        for path in inside
        if path.is_dir() and not path.is_symlink() and not path.name.startswith((".", "node_"))
    ]


def _meet(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)
