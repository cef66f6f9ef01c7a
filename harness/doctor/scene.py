"""What the doctor looks at: a project, the settings that a session there reads, and the environment; read once."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.doctor.entries import Hook, hooks_of
from harness.doctor.session import Session
from harness.doctor.settings_files import MANAGED_FOLDER, PLUGIN, PROJECT, SettingsFile, settings_files
from harness.errors import NotFoundError
from harness.handlers.place import SNAPSHOT, Projects, read_json
from harness.settings import CONFIG

VENDORED = Path(".claude/hooks/harness")
"""Where `harness init` puts the hooks of a project."""
OWN = Path("hooks")
"""Where they are in the harness's own repository and in its plugin."""
_DEPTH, _MOST_FOLDERS = 3, 2000


@dataclass(frozen=True, kw_only=True)
class Scene:
    start: Path
    """The folder in which `claude` is, or would be, started."""
    folder: Path
    """The folder in which it must be started, so that it reads the settings: the root, or a linked worktree's top."""
    root: Path
    """The project's root; from a linked worktree without a project of its own the main worktree's."""
    environment: Mapping[str, str]
    home: Path
    user_folder: Path
    """Claude Code's folder of the user: settings, and perhaps the CLI."""
    files: tuple[SettingsFile, ...]
    """The settings that count, strongest first."""
    session: Session | None = None
    """The running session around the doctor, if it is about this project."""
    had_receipts: bool = True
    """Whether the folder of receipts was there before the doctor came."""

    @cached_property
    def mode(self) -> str:
        """How the snapshot says that hooks come to this project: "project", "plugin" or "none"."""
        value, _ = read_json(os.path.join(self.root, SNAPSHOT))
        mode = value.get("hooks") if isinstance(value, dict) else None
        return mode if isinstance(mode, str) else PROJECT

    @property
    def plugin_folder(self) -> Path | None:
        """The plugin's own folder, which only what the plugin starts is told."""
        given = self.environment.get("CLAUDE_PLUGIN_ROOT")
        return Path(given).resolve() if given and self.mode == PLUGIN else None

    @property
    def hooks_folder(self) -> Path:
        if self.plugin_folder is not None:
            return self.plugin_folder / OWN
        vendored = self.folder / VENDORED
        return vendored if vendored.is_dir() or not (self.folder / OWN / "hooks.json").is_file() else self.folder / OWN

    @cached_property
    def hooks(self) -> tuple[Hook, ...]:
        return tuple(hook for file in self.files for hook in hooks_of(file))

    def own(self, source: str | None = None) -> Iterator[Hook]:
        """The hooks that are ours, of all settings files or of one."""
        return (hook for hook in self.hooks if hook.program is not None and source in (None, hook.file.source))

    def own_guards(self) -> Iterator[Hook]:
        return (hook for hook in self.own() if hook.guard)

    def file(self, source: str) -> SettingsFile:
        """The first settings file of `source`."""
        return next(file for file in self.files if file.source == source)

    def shown(self, source: str) -> str:
        """The path of a source's settings, relative to the project where it is inside."""
        path = self.file(source).path
        return path.relative_to(self.folder).as_posix() if path.is_relative_to(self.folder) else str(path)


def look(
    start: Path,
    environment: Mapping[str, str],
    *,
    home: Path,
    managed_folder: Path = MANAGED_FOLDER,
    session: Session | None = None,
) -> Scene:
    """The project that contains `start`, as a session that is started there, or `session` that runs, sees it.

    Raises NotFoundError when no project is at or above `start`.
    """
    project = Projects().containing(str(start.resolve()))
    if project is None:
        raise NotFoundError(
            f"No harness project at or above {start}: expected a folder with {CONFIG}.",
            mend="Run `harness init` in the repository, or pass `--project DIR`.",
            code="no_project",
        )
    folder = Path(project.root)
    if session is not None and not _meet(session.folder.resolve(), folder):
        session = None  # it is at work elsewhere
    user_folder = Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    return Scene(
        start=(session.folder if session else start).resolve(),
        folder=folder,
        root=Path(project.source),
        environment=environment,
        home=home,
        user_folder=user_folder,
        files=settings_files(folder, user_folder, managed_folder),
        session=session,
        had_receipts=Path(project.receipts).is_dir(),
    )


def projects_below(start: Path) -> list[Path]:
    """Projects in the folders below `start`, three levels deep at most: where a monorepo has them."""
    found: list[Path] = []
    level = [start]
    for _ in range(_DEPTH):
        level = [path for folder in level for path in _folders(folder)][:_MOST_FOLDERS]
        found += [path for path in level if (path / CONFIG).is_file()]
    return found


def _folders(folder: Path) -> list[Path]:
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return []
    return [
        path for path in inside if path.is_dir() and not path.is_symlink() and not path.name.startswith((".", "node_"))
    ]


def _meet(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)
