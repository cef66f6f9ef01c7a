"""One start of an evaluator: its request, its process in the sandbox, its answer.

What it does wrong is a problem, never a score.
"""

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain.commands import with_interpreter
from harness.domain.sandbox import Confinement, Sandbox
from harness.files import canonical_json, sha256_bytes
from harness.ledger.project import Project
from harness.posttrain.field_problems import FieldProblems
from harness.posttrain.specification import Specification
from harness.posttrain.untrusted_json import is_finite, read_object
from harness.posttrain.vocabulary import EVALUATORS, SCHEMA, EvaluationMode, is_bounded
from harness.runs.environment import (
    OFFLINE,
    PACKAGE,
    ask_python,
    child_environment,
    prepare_private,
)
from harness.settings import granted, require_interpreter

_MINUTES = 60.0
_LARGEST = 64 * 1024 * 1024  # bytes of an answer: one score a row


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores of one model: row id -> number."""

    values: dict[str, float]
    margins: dict[str, float]


def ask_evaluator(
    project: Project,
    spec: Specification,
    mode: EvaluationMode,
    folder: Path,
    who: str,
    adapter: dict[str, str] | None,
    sandbox: Sandbox,
    inherited: Mapping[str, str] | None,
) -> tuple[Scores | None, FieldProblems]:
    """Start the evaluator for one model; its scores, or what is wrong with its answer."""
    own = folder / who
    own.mkdir()
    named = spec.benchmark["evaluator"]
    rows = (folder / "rows.jsonl").read_bytes()
    base = {name: spec.model[name] for name in ("id", "path", "sha256")}
    request = {
        "schema": SCHEMA,
        # New for each start: an answer written beforehand cannot carry it.
        "request": sha256_bytes(secrets.token_bytes(32)),
        "evaluator": named if isinstance(named, str) else "command",
        "base_model": base,
        "adapter": adapter,
        "rows": {
            "path": str(folder / "rows.jsonl"),
            "sha256": sha256_bytes(rows),
            "count": spec.benchmark["rows"],
        },
        "mode": mode.value,
        "seed": spec.seed,
        "dtype": spec.dtype,
        "max_seq_length": spec.hyperparameters["max_seq_length"],
        "hardware_tier": spec.hardware_tier.value,
    }
    (own / "request.json").write_bytes(canonical_json(request))
    exit_code = _start(project, spec, own, adapter, sandbox, inherited)
    answer, unreadable = read_object(own / "answer.json", f"{who}.answer", largest=_LARGEST)
    problems = FieldProblems()
    if unreadable is not None and exit_code == 0:
        problems.append(unreadable)
    elif answer is None or exit_code != 0:
        expected = "exit code 0 and an answer"
        problems.add(who, expected, f"exit code {exit_code}", "the evaluator failed")
    if problems or answer is None:
        return None, problems
    ids = [json.loads(line)["id"] for line in rows.splitlines()]
    return _scores(who, request, answer, ids, bounded=is_bounded(named))


def _start(
    project: Project,
    spec: Specification,
    own: Path,
    adapter: dict[str, str] | None,
    sandbox: Sandbox,
    inherited: Mapping[str, str] | None,
) -> int | None:
    interpreter = require_interpreter(project.settings)
    python = ask_python(interpreter, sandbox)
    named, root = spec.benchmark["evaluator"], project.layout.root
    words = [interpreter, "-m", f"{EVALUATORS}.{named}"]
    stands = own  # not in the project: `-m` would find a json.py there before Python's own
    if not isinstance(named, str):
        words, stands = with_interpreter(named["command"], interpreter), root
    private = own / "private"
    private.mkdir()
    variables = {**OFFLINE, **prepare_private(private, python=python)}
    models = [spec.model["path"], adapter and adapter["path"]]
    readable = [root, own.parent, *models, *python["prefixes"], PACKAGE, *granted(project.settings)]
    done = sandbox.run(
        [*words, "--request", str(own / "request.json"), "--output", str(own / "answer.json")],
        confinement=Confinement(
            writable=(own,),
            read_only=tuple(
                Path(str(path)) for path in readable if path and Path(str(path)).exists()
            ),
        ),
        cwd=stands,
        environment=child_environment(
            os.environ if inherited is None else inherited, private, variables
        ),
        timeout_s=_MINUTES * 60,
    )
    return done.exit_code


def _scores(
    who: str,
    request: Mapping[str, Any],
    answer: Mapping[str, Any],
    ids: list[str],
    *,
    bounded: bool,
) -> tuple[Scores | None, FieldProblems]:
    adapter = request["adapter"]
    expected = {
        "schema": SCHEMA,
        "request": request["request"],
        "evaluator": request["evaluator"],
        "status": "completed",
        "rows_sha256": request["rows"]["sha256"],
        "base_model_sha256": request["base_model"]["sha256"],
        "adapter_sha256": None if adapter is None else adapter["sha256"],
    }
    # Every row has its score, or none counts: a mean over chosen rows would be another number.
    problems = FieldProblems()
    for name, value in expected.items():
        if answer.get(name) != value:
            reason = str(answer.get("failure") or "it read something else")
            problems.add(f"{who}.{name}", value, answer.get(name), reason)
    listed = answer.get("scores")
    listed = listed if isinstance(listed, list) else []
    scores = [entry for entry in listed if isinstance(entry, dict)]
    values = {str(entry.get("id")): entry.get("value") for entry in scores}
    if sorted(values) != sorted(map(str, ids)) or len(scores) != len(ids):
        one_each = f"one a row, {len(ids)}"
        problems.add(f"{who}.scores", one_each, len(scores), "missing, extra or twice")
    bad = [name for name, value in values.items() if not _good(value, bounded=bounded)]
    if bad:
        number = "a number in [0, 1]" if bounded else "a finite number"
        problems.add(f"{who}.scores", number, values[bad[0]], f"row {bad[0]}")
    if problems:
        return None, problems
    margins = {
        str(entry["id"]): float(entry["margin"])
        for entry in scores
        if _good(entry.get("margin"), bounded=False)
    }
    numbers = {name: float(value) for name, value in values.items() if value is not None}
    return Scores(values=numbers, margins=margins), problems


def _good(value: Any, *, bounded: bool) -> bool:
    return is_finite(value) and (not bounded or 0 <= value <= 1)
