"""What a repository has of its own that a plan names: programs, a Python environment, tables."""

import os
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain.variables import UNREGISTERED
from harness.plans.tables import FORMATS

_SKIPPED = frozenset(
    {".git", ".harness", ".claude", ".venv", "venv", "env", "node_modules", "__pycache__"}
    | {"build", "dist", "site-packages", "tests", "test", UNREGISTERED}
)
_DEEPEST = 4
"""Folders below the root that are looked into."""
_MOST_READ = 200_000
_ENVIRONMENTS = (".venv", "venv", "env")
_PYTHON = "bin/python"
_SPLITS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation", "dev", "eval"),
    "held_out": ("test", "held_out", "heldout", "holdout", "hold_out"),
}
_LOGGED = "run_logger"


@dataclass(frozen=True, kw_only=True)
class Program:
    """A way to start a program of the repository."""

    command: str
    """As a plan has it."""
    logs: bool
    """Whether its file uses the run logger, as far as its text says."""


@dataclass(frozen=True, kw_only=True)
class SplitFiles:
    """Tables that somebody has split already, relative to the root."""

    train: str
    validation: str | None
    held_out: str


def programs(root: Path, verb: str) -> list[Program]:
    """What starts a program called `verb` (train, predict): a script of that name, the nearest to
    the root first, then console scripts."""
    found = sorted(
        (path for path in _files(root, (".py",)) if _is_called(path.stem, verb)),
        key=lambda path: (path.stem != verb, len(path.parts), path.as_posix()),
    )
    exact = [path for path in found if path.stem == verb]
    scripts = [_program(root, path) for path in exact or found]
    return scripts or [Program(command=name, logs=True) for name in _console(root, verb)]


def _is_called(stem: str, verb: str) -> bool:
    words = re.split(r"[_\-.]", stem.lower())
    return verb in words and "test" not in words


def _program(root: Path, path: Path) -> Program:
    try:
        with (root / path).open("rb") as stream:
            text = stream.read(_MOST_READ).decode("utf-8", "replace")
    except OSError:
        text = ""
    command = f"python {shlex.quote(path.as_posix())}"
    if re.search(r"(?m)^\s*from\s+\.", text):
        # It imports its neighbours: it starts as a module of its package only.
        parts = path.with_suffix("").parts
        command = f"python -m {'.'.join(parts[parts[0] == 'src' :])}"
    return Program(command=command, logs=_LOGGED in text)


def _console(root: Path, verb: str) -> Iterator[str]:
    """Names of console scripts, of `project.scripts` and poetry's."""
    project = _pyproject(root)
    tables = (project.get("project", {}), project.get("tool", {}).get("poetry", {}))
    for table in tables:
        scripts = table.get("scripts", {}) if isinstance(table, dict) else {}
        yield from (name for name in scripts if _is_called(name, verb))


def _pyproject(root: Path) -> dict[str, Any]:
    try:
        read: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return read


def environment_of(root: Path, environ: Mapping[str, str]) -> tuple[str | None, str | None]:
    """(the interpreter of the project's own environment, relative where it lies in the project;
    what a person does first where its tool has made none)."""
    for name in _ENVIRONMENTS:
        if (root / name / "pyvenv.cfg").is_file() and (root / name / _PYTHON).exists():
            return f"{name}/{_PYTHON}", None
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        place = environ.get(name)
        if place and (Path(place) / _PYTHON).exists() and _names(root, Path(place)):
            return f"{place}/{_PYTHON}", None
    if (root / "poetry.lock").is_file():
        made = sorted(_of_poetry(root, environ))
        if len(made) == 1:
            return str(made[0] / _PYTHON), None
        return None, _first("poetry.lock", "poetry install")
    if (root / "uv.lock").is_file():
        return None, _first("uv.lock", "uv sync")
    for name in ("environment.yml", "environment.yaml"):
        if (root / name).is_file():
            return None, _first(name, f"conda env create -f {name}")
    return None, None


def _names(root: Path, place: Path) -> bool:
    """Whether an active environment is the project's: it lies in it, has its name, or is conda's
    and the project describes one."""
    own = place.is_relative_to(root) or root.name in place.name
    conda = any((root / name).is_file() for name in ("environment.yml", "environment.yaml"))
    return own or (conda and (place / "conda-meta").is_dir())


def _of_poetry(root: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    project = _pyproject(root)
    named = project.get("project", {}).get("name")
    named = named or project.get("tool", {}).get("poetry", {}).get("name")
    base = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME", "/"), ".cache")
    home = Path(base, "pypoetry/virtualenvs")
    slug = re.sub(r"[^a-z0-9]+", "-", str(named or root.name).lower())
    for place in home.glob(f"{slug}-*") if home.is_dir() else ():
        if (place / _PYTHON).exists():
            yield place


def _first(name: str, command: str) -> str:
    return (
        f"{name} is here and its environment is not: run `{command}`, then set `interpreter` in"
        " .harness/config.toml to its Python"
    )


def tables(root: Path) -> list[str]:
    """Of any format that a plan takes; nearest to the root first."""
    found = sorted(_files(root, FORMATS), key=lambda path: (len(path.parts), path.as_posix()))
    return [path.as_posix() for path in found]


def split_files(root: Path, train: str | None = None) -> SplitFiles | None:
    """The tables of one folder that are called as the parts of a split are; those beside `train`
    if it is given. None without one for training and one that can be held out."""
    folders: dict[tuple[Path, str], dict[str, str]] = {}
    for name in tables(root):
        path = Path(name)
        part = next((part for part, words in _SPLITS.items() if path.stem.lower() in words), None)
        if part is not None:
            folders.setdefault((path.parent, path.suffix), {}).setdefault(part, name)
    for parts in folders.values():
        whole = {"train", "held_out"} <= parts.keys()
        if whole and train in (None, parts["train"]):
            return SplitFiles(
                train=parts["train"],
                validation=parts.get("validation"),
                held_out=parts["held_out"],
            )
    return None


def _files(root: Path, suffixes: Iterable[str]) -> Iterator[Path]:
    """Relative to the root."""
    wanted = frozenset(suffixes)
    for folder, below, names in os.walk(root):
        here = Path(folder).relative_to(root)
        deep = len(here.parts) >= _DEEPEST
        below[:] = [] if deep else sorted(name for name in below if not _is_skipped(name))
        yield from (here / name for name in sorted(names) if Path(name).suffix in wanted)


def _is_skipped(name: str) -> bool:
    return name in _SKIPPED or name.startswith(".") or name.endswith(".egg-info")
