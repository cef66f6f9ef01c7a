"""Where an installation goes: the folder whose hooks these are, its project, and how hooks are to
come to a session."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts.locate import Layout
from harness.domain.statuses import HooksMode
from harness.errors import RefusedError
from harness.guard.agent_files import has_own_hooks
from harness.install.manifest import read_manifest
from harness.settings import (
    CONFIG,
    Settings,
    in_main_worktree,
    load_settings,
    new_config,
    state_home,
)

_HOOKS_LINE = re.compile(r"(?m)^hooks[ \t]*=.*$")
_MEMORY = ".harness/memory"


@dataclass(frozen=True, kw_only=True)
class InstallTarget:
    root: Path
    """Where `claude` is started: its .claude/ gets the hooks."""
    layout: Layout
    """The project's paths, also before it is made. Its root is `root`, or from a linked worktree
    without a project of its own the same folder of the main worktree."""
    mode: HooksMode
    config: str
    """config.toml as it is to be."""

    @property
    def own(self) -> bool:
        """The harness's own repository: its files are rendered, nothing is vendored."""
        return has_own_hooks(self.root)

    @property
    def new(self) -> bool:
        return not self.layout.project("config_toml").is_file()


def place_of(
    directory: Path, mode: HooksMode | None, environment: Mapping[str, str]
) -> InstallTarget:
    """Where `harness init --hooks MODE` of `directory` goes; without a mode what config.toml says,
    else vendored hooks.

    Raises RefusedError (hooks_installed) when the project has vendored hooks and `mode` is another,
    or (name_not_utf8) when no JSON file could name it, ConfigError when config.toml cannot be read.
    """
    root = _named(directory.resolve())
    project = root if (root / CONFIG).is_file() else in_main_worktree(root) or root
    if not (project / CONFIG).is_file():
        return _new_place(root, mode or HooksMode.PROJECT, environment)
    settings = load_settings(project, environment)
    chosen = mode or settings.hooks or HooksMode.PROJECT
    if read_manifest(root) is not None and chosen is not HooksMode.PROJECT:
        raise RefusedError(
            f"{root} has the hooks of the harness in its .claude/; with --hooks {chosen} it would"
            " have none there.",
            hint=(
                "Take them out with `harness init --remove`, then run `harness init --hooks"
                f" {chosen}`."
            ),
            code="hooks_installed",
        )
    config = (project / CONFIG).read_bytes().decode("utf-8")
    return InstallTarget(
        root=root,
        layout=Layout(settings),
        mode=chosen,
        config=_with_mode(config, chosen, settings.hooks),
    )


def _named(root: Path) -> Path:
    try:
        str(root).encode("utf-8")
    except UnicodeEncodeError as error:
        shown = str(root).encode("utf-8", "backslashreplace").decode("utf-8")
        raise RefusedError(
            f"The name of the folder {shown} is not UTF-8, so the policy snapshot cannot name it.",
            hint="Rename the folder, then run `harness init` again; nothing was changed.",
            code="name_not_utf8",
        ) from error
    return root


def settings_above(place: InstallTarget, environment: Mapping[str, str]) -> tuple[str, ...]:
    """A hint for a new project below the top of a repository that has settings or a project of its
    own; else nothing.

    A folder of a monorepo may be a project; it is also what somebody gets who was in the wrong
    folder.
    """
    top = next(
        (folder for folder in (place.root, *place.root.parents) if (folder / ".git").exists()),
        place.root,
    )
    if not place.new or top in (place.root, Path(environment.get("HOME", "/")).resolve()):
        return ()
    found = [f"{name}/" for name in (".claude", ".harness") if (top / name).is_dir()]
    if not found:
        return ()
    return (
        (
            "hint: Claude Code reads settings of the folder it is started in. The repository's"
            f" top, {top}, has {' and '.join(found)} already: to start `claude` there, `harness"
            " init` there."
        ),
    )


def _new_place(root: Path, mode: HooksMode, environment: Mapping[str, str]) -> InstallTarget:
    config = new_config(root.name, secrets.token_hex(4))
    identifier = config.split('"')[1]
    settings = Settings(
        root=root,
        state=state_home(environment) / identifier,
        project_id=identifier,
        interpreter=None,
        memory_dir=_MEMORY,
        readable=(),
    )
    return InstallTarget(
        root=root, layout=Layout(settings), mode=mode, config=_with_mode(config, mode, None)
    )


def _with_mode(config: str, mode: HooksMode, said: HooksMode | None) -> str:
    """config.toml with its line about hooks as `mode` needs it; vendored hooks need none."""
    if said is mode or (said is None and mode is HooksMode.PROJECT):
        return config
    line = f'hooks = "{mode}"'
    return _HOOKS_LINE.sub(line, config) if said is not None else f"{config.rstrip()}\n{line}\n"
