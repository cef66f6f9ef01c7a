"""Where a project is, and its settings: `.harness/config.toml` and the state directory."""

import os
import re
import secrets
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.domain.commands import found
from harness.domain.launch_options import Options, read_launchers
from harness.domain.notices import Notify, read_notify
from harness.domain.statuses import HooksMode
from harness.domain.team_ledger import url_problem
from harness.errors import ConfigError, NotFoundError, UsageError
from harness.files import atomic_write

CONFIG = ".harness/config.toml"
_PROJECT_ID = re.compile(r"[a-z0-9][a-z0-9._-]{2,63}\Z")
_KEYS = {
    "project_id",
    "interpreter",
    "memory_dir",
    "readable",
    "known_checkpoints",
    "hooks",
    "launcher",
    "ledger",
    "artifacts",
    "launchers",
    "notify",
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One project's settings, resolved."""

    root: Path
    """The folder that holds `.harness/`, absolute, links resolved."""
    state: Path
    """Ledger, vault and anchors: outside the project, out of agents' reach."""
    project_id: str
    interpreter: str | None
    """The Python for the plan's `python ...` commands: an absolute path, or a name on PATH.
    None: the one that runs the harness."""
    memory_dir: str
    """Relative to the root; `.harness/memory` unless set."""
    readable: tuple[str, ...]
    """What else sandboxed processes may read, e.g. a data disk: absolute paths. A folder below the
    root is data: no part of the code, and read-only where training sees it."""
    known_checkpoints: tuple[str, ...] = ()
    """Files and folders of weights that no run may submit as its own; relative or absolute."""
    hooks: HooksMode | None = None
    """The choice of `harness init --hooks`; None: the project's files show it."""
    launcher: str | None = None
    """Where commands of runs are started, a name of `runs.launchers`; None: on this machine."""
    ledger: str | None = None
    """The URL of a team's PostgreSQL, without a password; None: a file in the state directory."""
    artifacts: str | None = None
    """The URL of the store of checkpoints that machines share; None: there is none."""
    launchers: Options = field(default_factory=dict)
    """What each launcher is given: `[launchers.NAME]`."""
    notify: Notify | None = None
    """Whom it tells what a person waits for."""


def granted(settings: Settings) -> tuple[Path, ...]:
    """`readable` as far as it exists. A path below the root that a link leads out of the project is
    not granted: whoever made the link would open what it points to."""
    root = settings.root
    return tuple(
        path
        for path in map(Path, settings.readable)
        if path.exists()
        and (root not in path.parents or path.resolve().is_relative_to(root.resolve()))
    )


def state_home(environment: Mapping[str, str]) -> Path:
    """`$XDG_STATE_HOME/harness`, by default `~/.local/state/harness`."""
    base = environment.get("XDG_STATE_HOME") or os.path.join(
        environment.get("HOME") or "~", ".local", "state"
    )
    return Path(os.path.expanduser(base)).resolve() / "harness"


def find_root(start: Path) -> Path:
    """The nearest folder at or above `start` with `.harness/config.toml`.

    From a linked git worktree without one: the project at the same place in the main worktree.
    Raises NotFoundError when there is none.
    """
    here = start.resolve()
    passed: list[Path] = []
    for folder in (here, *here.parents):
        passed.append(folder)
        if (folder / CONFIG).is_file():
            return folder
        if (folder / CONFIG).exists():
            raise UsageError(
                f"{folder / CONFIG} is not a regular file.",
                hint="Move away what lies in its place, and restore the file.",
                code="path_not_a_file",
            )
        main = main_worktree(folder)
        for below in passed if main else ():
            if main and (main / below.relative_to(folder) / CONFIG).is_file():
                return main / below.relative_to(folder)
    raise NotFoundError(
        f"No harness project at or above {here}: expected a folder with {CONFIG}.",
        hint="Run `harness init` in the repository, or pass `--project DIR`.",
        code="no_project",
    )


def load_settings(start: Path, environment: Mapping[str, str]) -> Settings:
    """Read the project that contains `start`. Raises NotFoundError or ConfigError (file, key,
    expected)."""
    root = find_root(start)
    path = root / CONFIG
    values = _values(path)
    if unknown := sorted(set(values) - _KEYS):
        raise ConfigError(
            f"{path} has the unknown key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}.",
            hint="Remove or correct it.",
        )
    project_id = values.get("project_id")
    if not isinstance(project_id, str) or not _PROJECT_ID.match(project_id):
        raise ConfigError(
            f"{path}: project_id is {project_id!r}; expected 3 to 64 of a-z, 0-9, '.', '_', '-'.",
            hint="Restore it from git: it names the state directory.",
        )
    memory_dir = _text(path, values, "memory_dir") or ".harness/memory"
    inside = (root / memory_dir).resolve()
    if inside == root or not inside.is_relative_to(root):
        raise ConfigError(
            f"{path}: memory_dir {memory_dir!r} is not a folder below the project's root.",
            hint='E.g. "memory".',
        )
    readable = values.get("readable", [])
    if not isinstance(readable, list) or not all(
        isinstance(item, str) and item for item in readable
    ):
        raise ConfigError(
            f"{path}: readable must be a list of paths.",
            hint='E.g. readable = ["/data", "images"].',
        )
    readable = [os.path.normpath(root / item) for item in readable]
    known = values.get("known_checkpoints", [])
    if not isinstance(known, list) or not all(isinstance(item, str) and item for item in known):
        raise ConfigError(
            f"{path}: known_checkpoints must be a list of paths.",
            hint='E.g. known_checkpoints = ["weights/base.pt"].',
        )
    state = state_home(environment) / project_id
    _require_closed(path, readable, state)
    return Settings(
        root=root,
        state=state,
        project_id=project_id,
        interpreter=_interpreter(path, root, values),
        memory_dir=memory_dir,
        readable=tuple(readable),
        known_checkpoints=tuple(known),
        hooks=_hooks(path, values),
        launcher=_text(path, values, "launcher"),
        ledger=_ledger(path, values),
        artifacts=_artifacts(path, values),
        launchers=read_launchers(values.get("launchers"), where=str(path)),
        notify=read_notify(
            values.get("notify"),
            where=str(path),
            root=root,
        ),
    )


def _require_closed(path: Path, readable: list[str], state: Path) -> None:
    for item in readable:
        real = Path(item).resolve()
        if real.is_relative_to(state) or state.is_relative_to(real):
            raise ConfigError(
                f"{path}: readable {item!r} would open the state directory {state}, with held-out"
                " data, to agents.",
                hint="Name narrower folders, or move the state directory with XDG_STATE_HOME.",
            )


def _values(path: Path) -> dict[str, object]:
    """The values of config.toml; NUL is refused in every value, since no path can contain it."""
    try:
        values: dict[str, object] = tomllib.loads(path.read_text("utf-8"))
    except (
        ValueError,
        RecursionError,
    ) as error:  # ValueError: also a number that Python cannot hold
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError(f"{path} is not TOML: {what}.", hint="Fix the named line.") from error
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}.", hint="Check its permissions."
        ) from error
    for key, value in values.items():
        if any("\0" in item for item in _texts(value)):
            raise ConfigError(
                f"{path}: {key} holds a NUL character.", hint=f"Correct or remove {key}."
            )
    return values


def _texts(value: object) -> list[str]:
    """All texts in a value of config.toml."""
    if isinstance(value, str):
        return [value]
    inner: Iterable[object] = ()
    if isinstance(value, list):
        inner = value
    elif isinstance(value, dict):
        inner = value.values()
    return [text for one in inner for text in _texts(one)]


def require_interpreter(settings: Settings) -> str:
    """The Python for `python ...` commands: the project's setting, else the one we run on.

    Raises ConfigError (interpreter_missing) when the set one is missing or not executable.
    """
    if settings.interpreter is None:
        return sys.executable
    path = found(settings.interpreter)
    if path is None:
        raise ConfigError(
            f"{settings.root / CONFIG}: the interpreter {settings.interpreter} does not exist or"
            " cannot be executed.",
            hint=(
                "Make it, e.g. with `python3 -m venv`, or correct or remove `interpreter` in"
                f" {CONFIG}."
            ),
            code="interpreter_missing",
        )
    return path


def create_config(root: Path, *, name: str, token: str | None = None) -> Path:
    """Write `.harness/config.toml` with a new project id made from `name`, unless it exists."""
    path = root / CONFIG
    if not path.exists():
        atomic_write(path, new_config(name, token or secrets.token_hex(4)))
    return path


def new_config(name: str, token: str) -> str:
    """The config.toml of a new project `name`; `token` makes its id unique."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "project"
    return f'project_id = "{slug}-{token}"\n'


def name_ledger(root: Path, url: str | None) -> bytes:
    """Write where the ledger is into config.toml, None for the state directory; returns its bytes.
    Every other line stays. Raises ConfigError, changing nothing, where the line has no place, such
    as in a list of several lines."""
    path = root / CONFIG
    text = path.read_text("utf-8")
    lines = (text if text.endswith("\n") else text + "\n").splitlines(keepends=True)
    table = next((at for at, line in enumerate(lines) if line.lstrip().startswith("[")), None)
    top, rest = lines[:table], lines[table:] if table is not None else []
    top = [line for line in top if not re.match(r"\s*ledger\s*=", line)]
    if url is not None:
        top.append(f'ledger = "{url}"\n')
    after = "".join([*top, *rest])
    others = {**_values(path), "ledger": url}
    if url is None:
        others.pop("ledger")
    if not _is_toml_of(after, others):
        raise ConfigError(
            f"{path} has no line to which `ledger` can be added; it was left as it is.",
            hint=f'Write `ledger = "{url}"` into its first line.' if url else "Remove `ledger`.",
            code="config_line",
        )
    atomic_write(path, after)
    return path.read_bytes()


def _is_toml_of(text: str, values: Mapping[str, object]) -> bool:
    try:
        return tomllib.loads(text) == values
    except ValueError:
        return False


def _interpreter(path: Path, root: Path, values: Mapping[str, object]) -> str | None:
    """The interpreter setting; a relative path starts at the root, a bare name is left for PATH.

    Links are not followed: in a virtual environment the Python is one.
    """
    value = _text(path, values, "interpreter")
    return os.path.normpath(root / value) if value is not None and "/" in value else value


def _hooks(path: Path, values: Mapping[str, object]) -> HooksMode | None:
    value = _text(path, values, "hooks")
    if value is not None and value not in [*HooksMode]:
        raise ConfigError(
            f"{path}: hooks is {value!r}; expected {', '.join(HooksMode)}.",
            hint="`harness init --hooks` writes it.",
        )
    return None if value is None else HooksMode(value)


def _artifacts(path: Path, values: Mapping[str, object]) -> str | None:
    url = _text(path, values, "artifacts")
    if url is not None and not re.fullmatch(r"(s3://[a-z0-9][^?#@]*|file:///[^?#]+)", url):
        raise ConfigError(
            f"{path}: artifacts names no store: expected s3://BUCKET/PREFIX or file:///FOLDER,"
            " without keys.",
            hint="What opens a bucket comes from the environment: AWS_PROFILE, AWS_ENDPOINT_URL.",
            code="artifacts_url",
        )
    return url


def _ledger(path: Path, values: Mapping[str, object]) -> str | None:
    url = _text(path, values, "ledger")
    what = None if url is None else url_problem(url)
    if what is not None:
        raise ConfigError(
            f"{path}: ledger names no server: {what}.",
            hint='E.g. ledger = "postgresql://db.example/harness"; `harness ledger migrate` writes'
            " it.",
            code="ledger_url",
        )
    return url


def _text(path: Path, values: Mapping[str, object], key: str) -> str | None:
    value = values.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise ConfigError(
            f"{path}: {key} is {value!r}; expected text.", hint=f"Correct or remove {key}."
        )
    return value


def main_worktree(folder: Path) -> Path | None:
    """The main worktree, if `folder` is the top of a linked one; else None.

    The .git file leads there through `commondir`. A bare repository has no main worktree.
    guard.hooks.projects has the same rule, since hooks import nothing from here; one test checks
    both.
    """
    try:
        link = folder / ".git"
        text = os.fsdecode(link.read_bytes()).strip() if link.is_file() else ""
        if not text.startswith("gitdir:"):
            return None
        git_dir = folder / text.removeprefix("gitdir:").strip()
        common = (git_dir / os.fsdecode((git_dir / "commondir").read_bytes()).strip()).resolve()
        return (
            common.parent if common.name == ".git" and common.parent != folder.resolve() else None
        )
    except (OSError, ValueError, RuntimeError):  # RuntimeError: a cycle of links
        return None


def main_root(root: Path) -> Path:
    """The project's root in the main worktree; `root` itself in any other place."""
    return in_main_worktree(root) or root


def in_main_worktree(root: Path) -> Path | None:
    """The counterpart of `root` in the main worktree, if that is a project; else None."""
    for folder in (root, *root.parents):
        main = main_worktree(folder)
        if main is not None:
            beside = main / root.relative_to(folder)
            return beside if (beside / CONFIG).is_file() else None
        if (folder / ".git").is_dir():
            break
    return None
