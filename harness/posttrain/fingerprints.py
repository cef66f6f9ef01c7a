"""What a specification is made of, as hashes: documented in docs/training-programs.md, so that any trainer can compute
the same. All are whole SHA-256 in lower-case hex."""

import itertools
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.artifacts.hashes import hash_file
from harness.errors import NotFoundError
from harness.files import canonical_json, sha256_bytes
from harness.posttrain.vocabulary import TRAINERS, Backend
from harness.project.scorer import import_closure

_PACKAGE = Path(__file__).resolve().parents[1]


def config_fingerprint(
    *, backend: str, mode: str, dtype: str, seed: int, hyperparameters: Mapping[str, float | int]
) -> str:
    """Of everything that changes the training but data, model and code."""
    values = {"backend": backend, "mode": mode, "dtype": dtype, "seed": seed, "hyperparameters": dict(hyperparameters)}
    return sha256_bytes(canonical_json(values))


def trainer_module(backend: Backend) -> str:
    return f"{TRAINERS}.{backend.value.replace('-', '_')}"


def code_hash(backend: Backend, command: Sequence[str] | None, root: Path) -> str:
    """Of the trainer and all local modules that it imports, directly or not.

    Raises NotFoundError (trainer_missing) when the program does not exist, PlanError when it is not Python.
    """
    if backend is Backend.DRY_RUN:
        files = {"dry_run.py": hash_file(Path(__file__).with_name("dry_run.py"))}
    elif backend is not Backend.COMMAND:
        script = f"{trainer_module(backend).replace('.', '/')}.py"
        if not (_PACKAGE.parent / script).is_file():
            raise _missing(script)
        files = _closure(_PACKAGE.parent, script, package=True)
    else:
        files = _of_command(command or (), root)
    return sha256_bytes(canonical_json(sorted(files.items())))


def _of_command(command: Sequence[str], root: Path) -> dict[str, str]:
    """Of every word that is a file of the project, and of a module after `-m`; else of the program itself."""
    named = [f"{word.replace('.', '/')}.py" for before, word in itertools.pairwise(command) if before == "-m"]
    files: dict[str, str] = {}
    for word in [*command, *named]:
        path = root / word
        if word.endswith(".py") and path.resolve().is_relative_to(root.resolve()) and not word.startswith("/"):
            if not path.is_file():
                raise _missing(word)
            files |= _closure(root, word)
        elif path.is_file() and not word.startswith("/"):
            files[word] = hash_file(path)
    if not files:
        program = shutil.which(command[0]) if command else None
        if program is None:
            raise _missing(command[0] if command else "(nothing)")
        files[command[0]] = hash_file(Path(program))
    return files


def _closure(root: Path, script: str, *, package: bool = False) -> dict[str, str]:
    sources = import_closure(root, Path(script).as_posix(), package=package).sources
    return {name: sha256_bytes(data) for name, data in sources.items()}


def _missing(name: str) -> NotFoundError:
    return NotFoundError(
        f"The trainer {name} does not exist.", mend="Write it, or correct `command`.", code="trainer_missing"
    )


def rows_of(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """(SHA-256 of the bytes, rows) of a JSON-lines file, from one reading of it.

    Raises NotFoundError when it is missing, ValueError naming the line that is no JSON object, or that there is none.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} does not exist.", mend="Check the path.", code="file_missing") from error
    rows = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number} is no JSON: {error}") from error
        if not isinstance(row, dict):
            raise ValueError(f"line {number} is no JSON object")
        rows.append(row)
    if not rows:
        raise ValueError("it has no rows")
    return sha256_bytes(data), rows
