"""What a specification is made of, as hashes: documented in docs/training-programs.md, so that any
trainer can compute the same. All are whole SHA-256 in lower-case hex."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.artifacts.content import hash_file, open_regular
from harness.errors import UsageError
from harness.files import canonical_json, sha256_bytes
from harness.posttrain.command_files import closure_hashes, command_files, missing
from harness.posttrain.reading import require_plain
from harness.posttrain.vocabulary import EVALUATORS, TRAINERS, Backend

_PACKAGE = Path(__file__).resolve().parents[1]


def config_fingerprint(
    *, backend: str, mode: str, dtype: str, seed: int, hyperparameters: Mapping[str, float | int]
) -> str:
    """Of everything that changes the training but data, model and code."""
    values = {
        "backend": backend,
        "mode": mode,
        "dtype": dtype,
        "seed": seed,
        "hyperparameters": dict(hyperparameters),
    }
    return sha256_bytes(canonical_json(values))


def trainer_module(backend: Backend) -> str:
    return f"{TRAINERS}.{backend.value.replace('-', '_')}"


def code_hash(backend: Backend, command: Sequence[str] | None, root: Path) -> str:
    """Of the trainer and all local modules that it imports, directly or not.

    Raises NotFoundError (trainer_missing) when the program does not exist, PlanError when it is not
    Python.
    """
    if backend is Backend.DRY_RUN:
        files = {"dry_run.py": hash_file(Path(__file__).with_name("dry_run.py"))}
    elif backend is not Backend.COMMAND:
        script = f"{trainer_module(backend).replace('.', '/')}.py"
        if not (_PACKAGE.parent / script).is_file():
            raise missing(script)
        files = closure_hashes(_PACKAGE.parent, script, package=True)
    else:
        files = command_files(command or (), root)
    return sha256_bytes(canonical_json(sorted(files.items())))


def evaluator_hash(evaluator: str | Mapping[str, Any], root: Path) -> str:
    """Of a benchmark's evaluator, as `code_hash`: one of the package by its name, or the words
    under `command`."""
    if not isinstance(evaluator, str):
        return code_hash(Backend.COMMAND, evaluator["command"], root)
    files = closure_hashes(
        _PACKAGE.parent, f"{EVALUATORS.replace('.', '/')}/{evaluator}.py", package=True
    )
    return sha256_bytes(canonical_json(sorted(files.items())))


def rows_of(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """(SHA-256 of the bytes, rows) of a JSON-lines file, from one reading of it.

    Raises NotFoundError when it is missing, UsageError naming the line that is no JSON object, or
    that there is none.
    """
    with open_regular(path) as stream:
        data = stream.read()
    rows = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            require_plain(row)
        except (ValueError, RecursionError) as error:
            raise _bad_rows(path, f"line {number} is no JSON: {error}") from error
        if not isinstance(row, dict):
            raise _bad_rows(path, f"line {number} is no JSON object")
        rows.append(row)
    if not rows:
        raise _bad_rows(path, "it has no rows")
    return sha256_bytes(data), rows


def _bad_rows(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path}: {why}; expected one JSON object a line.",
        hint="Correct that file.",
        code="bad_rows",
    )
