"""One start of an evaluator: its request, its process in the sandbox, its answer. What it does
wrong is a problem, never a score."""

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
from harness.posttrain.launching import OFFLINE, PACKAGE
from harness.posttrain.problems import Problem, problem
from harness.posttrain.reading import is_finite, read_object
from harness.posttrain.spec import Spec
from harness.posttrain.vocabulary import EVALUATORS, SCHEMA, EvaluationMode, Evaluator
from harness.runs.environment import ask_python, child_environment, prepare_private
from harness.settings import require_interpreter

_MINUTES = 60.0
_LARGEST = 64 * 1024 * 1024  # bytes of an answer: one score a row


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Of one model: row id to number."""

    values: dict[str, float]
    margins: dict[str, float]


def ask_evaluator(
    project: Project,
    spec: Spec,
    mode: EvaluationMode,
    folder: Path,
    who: str,
    adapter: dict[str, str] | None,
    sandbox: Sandbox,
    inherited: Mapping[str, str] | None,
) -> tuple[Scores | None, list[Problem]]:
    """One start of the evaluator."""
    own = folder / who
    own.mkdir()
    named = spec.benchmark["evaluator"]
    rows = (folder / "rows.jsonl").read_bytes()
    base = {name: spec.model[name] for name in ("id", "path", "sha256")}
    request = {
        "schema": SCHEMA,
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
    done = _start(project, spec, own, adapter, sandbox, inherited)
    answer, wrong = read_object(own / "answer.json", f"{who}.answer", largest=_LARGEST)
    if done != 0 or (answer is None and wrong is None):
        return None, [
            problem(who, "exit code 0 and an answer", f"exit code {done}", "the evaluator failed")
        ]
    if answer is None or wrong is not None:
        return None, [wrong] if wrong is not None else []
    ids = [json.loads(line)["id"] for line in rows.splitlines()]
    return _scores(who, request, answer, ids, bounded=named != Evaluator.PERPLEXITY)


def _start(
    project: Project,
    spec: Spec,
    own: Path,
    adapter: dict[str, str] | None,
    sandbox: Sandbox,
    inherited: Mapping[str, str] | None,
) -> int | None:
    interpreter = require_interpreter(project.settings)
    python = ask_python(interpreter, sandbox)
    named, root = spec.benchmark["evaluator"], project.layout.root
    words = [interpreter, "-m", f"{EVALUATORS}.{named}"]
    if not isinstance(named, str):
        words = with_interpreter(named["command"], interpreter)
    private = own / "private"
    private.mkdir()
    given = {**OFFLINE, **prepare_private(private, python=python)}
    needed = [
        root,
        own.parent,
        spec.model["path"],
        adapter and adapter["path"],
        *python["prefixes"],
        PACKAGE,
    ]
    listed = [*needed, *project.settings.readable]
    done = sandbox.run(
        [*words, "--request", str(own / "request.json"), "--output", str(own / "answer.json")],
        confinement=Confinement(
            writable=(own,),
            read_only=tuple(
                Path(str(path)) for path in listed if path and Path(str(path)).exists()
            ),
        ),
        cwd=root,
        environment=child_environment(
            os.environ if inherited is None else inherited, private, given
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
) -> tuple[Scores | None, list[Problem]]:
    adapter = request["adapter"]
    wanted = {
        "schema": SCHEMA,
        "request": request["request"],
        "evaluator": request["evaluator"],
        "status": "completed",
        "rows_sha256": request["rows"]["sha256"],
        "base_model_sha256": request["base_model"]["sha256"],
        "adapter_sha256": None if adapter is None else adapter["sha256"],
    }
    found = [
        problem(
            f"{who}.{name}",
            value,
            answer.get(name),
            str(answer.get("failure") or "it read something else"),
        )
        for name, value in wanted.items()
        if answer.get(name) != value
    ]
    scores = answer.get("scores")
    given = [item for item in scores if isinstance(item, dict)] if isinstance(scores, list) else []
    values = {str(item.get("id")): item.get("value") for item in given}
    if sorted(values) != sorted(map(str, ids)) or len(given) != len(ids):
        found.append(
            problem(
                f"{who}.scores", f"one a row, {len(ids)}", len(given), "missing, extra or twice"
            )
        )
    bad = [name for name, value in values.items() if not _good(value, bounded=bounded)]
    if bad:
        expected = "a number in [0, 1]" if bounded else "a finite number"
        found.append(problem(f"{who}.scores", expected, values[bad[0]], f"row {bad[0]}"))
    if found:
        return None, found
    margins = {
        str(item["id"]): float(item["margin"])
        for item in given
        if _good(item.get("margin"), bounded=False)
    }
    return Scores(
        values={name: float(value) for name, value in values.items() if value is not None},
        margins=margins,
    ), []


def _good(value: Any, *, bounded: bool) -> bool:
    return is_finite(value) and (not bounded or 0 <= value <= 1)
