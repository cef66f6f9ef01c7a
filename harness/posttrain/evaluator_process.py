"""One start of an evaluator: its request, its process in the sandbox, its answer.

What it does wrong is a problem, never a score.
"""

import json
import os
import re
import secrets
from collections.abc import (
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.artifacts.code_snapshot import load_snapshot
from harness.domain.commands import with_interpreter
from harness.domain.plain_text import one_line
from harness.domain.sandbox import (
    Completed,
    Confinement,
    Placed,
    Sandbox,
)
from harness.errors import RefusedError
from harness.files import (
    canonical_json,
    sha256_bytes,
)
from harness.ledger.facts import BenchmarkApproved
from harness.ledger.project import Project
from harness.posttrain.code_hashes import (
    code_hash,
    command_files,
)
from harness.posttrain.field_problems import FieldProblem, FieldProblems
from harness.posttrain.specification import Specification
from harness.posttrain.training_judgement import known
from harness.posttrain.untrusted_json import (
    is_finite,
    read_object,
)
from harness.posttrain.vocabulary import (
    EVALUATORS,
    SCHEMA,
    Backend,
    EvaluationMode,
    is_bounded,
)
from harness.runs.environment import (
    OFFLINE,
    PACKAGE,
    ask_python,
    child_environment,
    prepare_private,
)
from harness.runs.workspace import (
    Workspace,
    make_workspace,
    remove_workspace,
)
from harness.settings import (
    Settings,
    require_interpreter,
)

_MINUTES = 60.0
_WORDS = 300
"""Characters of what an evaluator says of its failure."""
_FAILED = "the evaluator failed"
_TYPE = re.compile(
    rf"(?:{_FAILED}: )?([A-Za-z_][\w.]{{0,60}}(?:Error|Exception))(?=:|\Z)", re.ASCII
)
_EXIT = re.compile(r"exit code -?\d{1,3}")
_LARGEST = 64 * 1024 * 1024  # bytes of an answer: one score a row


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores of one model: row id -> number."""

    values: dict[str, float]
    margins: dict[str, float]


def ask_evaluator(
    project: Project,
    approved: BenchmarkApproved,
    spec: Specification,
    mode: EvaluationMode,
    folder: Path,
    who: str,
    adapter: dict[str, str] | None,
    sandbox: Sandbox,
    inherited: Mapping[str, str] | None,
) -> tuple[Scores | None, FieldProblems]:
    """Start the evaluator for one model; its scores, or what is wrong with its answer. Raises
    RefusedError (evaluator_changed)."""
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
    ended = _start(project, approved, spec, request, own, sandbox, inherited)
    exit_code = ended.exit_code
    answer, unreadable = read_object(own / "answer.json", f"{who}.answer", largest=_LARGEST)
    problems = FieldProblems()
    if unreadable is not None and exit_code == 0:
        problems.append(unreadable)
    elif answer is None or exit_code != 0:
        expected = "exit code 0 and an answer"
        problems.add(who, expected, f"exit code {exit_code}", _failure(answer, ended))
    if problems or answer is None:
        return None, problems
    ids = [json.loads(line)["id"] for line in rows.splitlines()]
    return _scores(who, request, answer, ids, bounded=is_bounded(named))


def _start(
    project: Project,
    approved: BenchmarkApproved,
    spec: Specification,
    request: Mapping[str, Any],
    own: Path,
    sandbox: Sandbox,
    inherited: Mapping[str, str] | None,
) -> Completed:
    interpreter = require_interpreter(project.settings)
    python = ask_python(interpreter, sandbox)
    private = own / "private"
    private.mkdir()
    told = request["base_model"]["path"], (request["adapter"] or {}).get("path")
    models = [Path(path) for path in told if path is not None]
    named = approved.evaluator
    reads, no_places = [own.parent, PACKAGE], tuple[Placed, ...]()
    with _workspace(project, approved, request, own, models, python, sandbox) as made:
        if isinstance(named, str) or made is None:
            # Not in the project: `-m` would find a json.py there before Python's own.
            words, stands = [interpreter, "-m", f"{EVALUATORS}.{named}"], own
            placed, imports = no_places, list[str]()
            reads += [*models, *map(Path, python["prefixes"])]
        else:
            words, stands = made.words(with_interpreter(named["command"], interpreter)), made.seen
            placed, imports = made.placed, made.imports(python["project_paths"])
            reads += made.read_only
        variables = {**OFFLINE, **prepare_private(private, python=python, imports=imports)}
        return sandbox.run(
            [*words, "--request", str(own / "request.json"), "--output", str(own / "answer.json")],
            confinement=Confinement(
                placed=placed,
                writable=(own,),
                read_only=tuple(path for path in reads if path.exists()),
                hidden=(project.layout.state,),
            ),
            cwd=stands,
            environment=child_environment(
                os.environ if inherited is None else inherited, private, variables
            ),
            timeout_s=_MINUTES * 60,
        )


def _failure(answer: Mapping[str, Any] | None, ended: Completed) -> str:
    """Why an evaluator failed: its own words, else the last line that it printed."""
    words = str((answer or {}).get("failure") or "")
    lines = ended.stderr.decode("utf-8", "replace").split("\n")
    said = words or next((line for line in reversed(lines) if line.strip()), "")
    return f"{_FAILED}: {one_line(said, _WORDS)}" if said else _FAILED


def withheld(problem: FieldProblem) -> FieldProblem:
    """The same without words that an evaluator, or a row, could choose; an error's type stays."""
    kind = _TYPE.match(problem.reason)
    return replace(
        problem,
        actual=problem.actual if _EXIT.fullmatch(problem.actual) else "something else",
        reason=f"{_FAILED}: {kind[1]}" if kind else _FAILED,
    )


@contextmanager
def _workspace(
    project: Project,
    approved: BenchmarkApproved,
    request: Mapping[str, Any],
    own: Path,
    models: list[Path],
    python: Mapping[str, Any],
    sandbox: Sandbox,
) -> Iterator[Workspace | None]:
    """The code that a person approved, and nothing else of the project; None for an evaluator of
    the package, which needs none."""
    if approved.snapshot is None or isinstance(approved.evaluator, str):
        yield None
        return
    layout, settings, token = project.layout, project.settings, str(request["request"])
    try:
        made = make_workspace(
            layout,
            token,
            load_snapshot(layout.objects, approved.snapshot),
            sandbox,
            data={},
            readable=settings.readable,
            named=[*models, *python["prefixes"]],
            run_dir=own,
        )
        # Also for what lies outside of the project.
        command = made.words(approved.evaluator["command"])
        now = known(lambda: code_hash(Backend.COMMAND, command, settings, made.path))
        if now != (frozen := approved.evaluator["code_hash"]):
            raise _changed(command, f"{now[:60]}; {str(frozen)[:12]} was approved")
        before = _outside(command, settings, made.path)
        yield made
        # In its copy it writes as it likes; what lies outside is the same for the next one.
        if _outside(command, settings, made.path) != before:
            raise _changed(command, "another one now than when it was started")
    finally:
        remove_workspace(layout, token)


def _outside(command: Sequence[str], settings: Settings, root: Path) -> dict[str, str]:
    """Hashes of what the command runs that does not lie below `root`."""
    return {
        name: digest
        for name, digest in command_files(command, settings, root).items()
        if os.path.isabs(name) and not Path(name).is_relative_to(root)
    }


def _changed(command: Sequence[str], what: str) -> RefusedError:
    return RefusedError(
        f"The code of the evaluator {' '.join(command)} is {what}.",
        hint="Restore it, or let a person approve the benchmark again.",
        code="evaluator_changed",
    )


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
