"""Where an installation goes: folder, project, and how hooks reach a session."""

import json
import re
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts.locate import Layout
from harness.domain.statuses import HooksMode
from harness.errors import RefusedError
from harness.guard.agent_files import has_own_hooks
from harness.guard.hooks.control_digests import WORKTREES
from harness.install.manifest import read_manifest
from harness.install.repository import environment_of
from harness.settings import (
    CONFIG,
    Settings,
    load_settings,
    main_root,
    new_config,
    state_home,
)

_TABLE = re.compile(r"(?m)^[ \t]*\[")
_HOOKS_LINE = re.compile(r"(?m)^hooks[ \t]*=.*$")
_MEMORY = ".harness/memory"
_OWN = frozenset({".claude", ".harness", ".git"})


@dataclass(frozen=True, kw_only=True)
class InstallTarget:
    root: Path
    """Where `claude` is started: its .claude/ gets the hooks."""
    layout: Layout
    """The project's paths. Its root is `root`; for a linked worktree without a project of its own,
    the same folder of the main worktree."""
    mode: HooksMode
    config: str
    """The text of config.toml afterwards."""

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
    """The target of `harness init --hooks MODE`; the default mode is config.toml's, else vendored.

    Raises RefusedError (hooks_installed) when the project has vendored hooks and `mode` is another,
    RefusedError (name_not_utf8) and ConfigError.
    """
    root = _named(directory.resolve())
    _require_no_inner(root)
    project = root if (root / CONFIG).is_file() else main_root(root)
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


def _require_no_inner(root: Path) -> None:
    """Raises RefusedError (inside_own_folder) in a folder that belongs to Claude Code, git or the
    harness: the project is the one above."""
    own = [
        place
        for place in (root, *root.parents)
        if place.name in _OWN and not _in_worktree(root.relative_to(place.parent))
    ]
    if own:
        above = own[-1].parent
        raise RefusedError(
            f"{root} is no project: {own[-1].name} is a folder of the project {above}.",
            hint=f"Run `harness init {shlex.quote(str(above))}`.",
            code="inside_own_folder",
        )


def _in_worktree(path: Path) -> bool:
    """Whether it leads into one of the copies of the repository that Claude Code makes."""
    return path.is_relative_to(WORKTREES) and path != Path(WORKTREES)


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
    """For a new project below the top of a repository: which folder it is, and a hint where the
    top has settings or a project. That may be a monorepo, or the wrong folder."""
    top = next(
        (folder for folder in (place.root, *place.root.parents) if (folder / ".git").exists()),
        place.root,
    )
    if not place.new or top in (place.root, Path(environment.get("HOME", "/")).resolve()):
        return ()
    hints = (f"the project is {place.root.relative_to(top)}/ of the repository {top}",)
    present = [f"{name}/" for name in (".claude", ".harness") if (top / name).is_dir()]
    if not present:
        return hints
    return (
        *hints,
        "hint: Claude Code reads the settings of the folder it is started in. The repository's top,"
        f" {top}, already has {' and '.join(present)}: to start `claude` there, run `harness init`"
        " there.",
    )


def environment_found(place: InstallTarget, environment: Mapping[str, str]) -> tuple[str, ...]:
    """What a new project's own Python environment is, or how it is made."""
    interpreter, first = environment_of(place.root, environment) if place.new else (None, None)
    if interpreter is not None:
        return (f"{interpreter} trains and predicts (`interpreter` in {CONFIG})",)
    return () if first is None else (first,)


def _new_place(root: Path, mode: HooksMode, environment: Mapping[str, str]) -> InstallTarget:
    config = new_config(root.name, secrets.token_hex(4))
    identifier = config.split('"')[1]
    interpreter, _ = environment_of(root, environment)
    if interpreter is not None:
        config += f"interpreter = {json.dumps(interpreter)}\n"
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


def _with_mode(config: str, mode: HooksMode, before: HooksMode | None) -> str:
    """config.toml with its line about hooks as `mode` needs it; vendored hooks need none."""
    if before is mode or (before is None and mode is HooksMode.PROJECT):
        return config
    line = f'hooks = "{mode}"'
    if before is not None:
        return _HOOKS_LINE.sub(line, config)
    # Before the first table: what follows a table's head is the table's.
    table = _TABLE.search(config)
    end = len(config) if table is None else table.start()
    above, below = config[:end].rstrip(), config[end:]
    return f"{above}\n{line}\n" + (f"\n{below}" if below else "")
