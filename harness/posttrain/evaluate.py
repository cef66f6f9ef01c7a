"""One evaluation of a model: baseline and candidate on the same held-out rows, by the evaluator that the specification
names, started by the harness. An evaluator's failure is INCONCLUSIVE, never a score.

The interval is the central 95% of the paired bootstrap of the mean difference (Efron and Tibshirani, 1993, ch. 16).
"""

import json
import math
import os
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.artifacts.hashes import hash_path
from harness.domain.commands import with_interpreter
from harness.domain.models import Model, ModelEvaluation, ModelState
from harness.domain.program_facts import ModelMoved, ModelServed
from harness.domain.sandbox import Confinement, Sandbox
from harness.domain.statuses import RunStatus, Verdict
from harness.errors import HarnessError, RefusedError, UsageError
from harness.evaluation.intervals import bootstrap_mean
from harness.files import canonical_json, sha256_bytes
from harness.posttrain.fingerprints import rows_of
from harness.posttrain.judge import program_spec
from harness.posttrain.launching import OFFLINE, PACKAGE
from harness.posttrain.problems import Problem, problem
from harness.posttrain.spec import Spec
from harness.posttrain.thresholds import THRESHOLDS
from harness.posttrain.vocabulary import EVALUATORS, SCHEMA, EvaluationMode, Evaluator
from harness.project.context import Project
from harness.runs.environment import ask_python, child_environment, prepare_private
from harness.settings import require_interpreter

BASE = "base"
_MINUTES = 60.0
_FALLEN = frozenset({ModelState.REJECTED, ModelState.REVOKED})


@dataclass(frozen=True, kw_only=True)
class _Scores:
    values: dict[str, float]
    margins: dict[str, float]


def evaluate_model(
    project: Project,
    identifier: str,
    mode: EvaluationMode,
    *,
    against: str | None,
    sandbox: Sandbox,
    inherited: Mapping[str, str] | None = None,
) -> ModelEvaluation:
    """Record one evaluation of the model against its base model, or against the model `against`.

    A FAIL revokes what the model had earned and stops it from being served, in the same step. Raises RefusedError when
    the run that made it is not completed or a file is not what it was, UsageError when the mode shows no guidance.
    """
    model = project.ledger.model(identifier)
    spec = program_spec(project, model.experiment)
    if project.ledger.run(model.experiment, model.run).status is not RunStatus.COMPLETED:
        raise RefusedError(f"{model.experiment}/{model.run} is not completed.", mend="Recover it: `harness continue`.")
    other = project.ledger.model(against) if against is not None else None
    paths = {item.id: intact(project, item) for item in (model, other) if item is not None}
    rows, evidence = _rows(project, spec, mode)
    asked = {"baseline": other, "candidate": model}
    scores: dict[str, _Scores] = {}
    problems: list[Problem] = []
    with tempfile.TemporaryDirectory(prefix="harness-posttrain-") as name:
        folder = Path(name).resolve()
        (folder / "rows.jsonl").write_bytes(rows)
        for who, item in asked.items():
            adapter = None if item is None else {"path": str(paths[item.id]), "format": item.format, "sha256": item.id}
            told, found = _ask(project, spec, mode, folder, who, adapter, sandbox, inherited)
            problems += found
            if told is not None:
                scores[who] = told
                evidence[f"{who}_scores"] = sha256_bytes(canonical_json(told.values))
    evidence["model"] = model.id
    return _record(
        project,
        spec,
        model,
        against=other.id if other else BASE,
        mode=mode,
        scores=scores,
        problems=problems,
        evidence=evidence,
    )


def intact(project: Project, model: Model) -> Path:
    """The model's folder, re-hashed. Raises RefusedError (model_changed) when it is not what was registered."""
    path = project.layout.root / model.path
    try:
        now = hash_path(path)
    except HarnessError as error:
        now = error.message
    if now != model.id:
        raise RefusedError(
            f"{path} is not model {model.id[:12]} any more: {now[:80]}.",
            mend="Restore it, or train again: a model is its bytes.",
            code="model_changed",
        )
    return path


def _rows(project: Project, spec: Spec, mode: EvaluationMode) -> tuple[bytes, dict[str, str]]:
    """The benchmark's rows in the mode's form: the only difference between the modes is the guidance."""
    digest, rows = rows_of(project.layout.root / spec.benchmark["path"])
    if digest != spec.benchmark["sha256"]:
        raise RefusedError(
            f"{spec.benchmark['path']} is not what was specified.", mend="Restore it.", code="benchmark_changed"
        )
    assisted = mode is EvaluationMode.PROMPT_ASSISTED
    if assisted and not any(str(row.get("guidance") or "").strip() for row in rows):
        raise UsageError("No row of the benchmark has `guidance`: both modes would be the same.", mend="Use the other.")
    if len({row["id"] for row in rows}) != len(rows):
        raise UsageError("Two rows of the benchmark have the same id.", mend="Give each its own.")
    shown = []
    for row in rows:
        plain = {name: value for name, value in row.items() if name != "guidance"}
        guidance = str(row.get("guidance") or "").strip()
        if assisted and guidance:
            plain["prompt"] = f"{guidance}\n\n{row['prompt']}"
        shown.append(canonical_json(plain) + b"\n")
    data = b"".join(shown)
    return data, {"benchmark": digest, "rows": sha256_bytes(data)}


def _ask(
    project: Project,
    spec: Spec,
    mode: EvaluationMode,
    folder: Path,
    who: str,
    adapter: dict[str, str] | None,
    sandbox: Sandbox,
    inherited: Mapping[str, str] | None,
) -> tuple[_Scores | None, list[Problem]]:
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
    answer_file = own / "answer.json"
    if done != 0 or not answer_file.is_file() or answer_file.is_symlink():
        return None, [problem(who, "exit code 0 and an answer", f"exit code {done}", "the evaluator failed")]
    try:
        answer = json.loads(answer_file.read_bytes())
    except (ValueError, RecursionError) as error:
        return None, [problem(who, "a JSON object", str(error), "the evaluator's answer cannot be read")]
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
    needed = [root, own.parent, spec.model["path"], adapter and adapter["path"], *python["prefixes"], PACKAGE]
    listed = [*needed, *project.settings.readable]
    done = sandbox.run(
        [*words, "--request", str(own / "request.json"), "--output", str(own / "answer.json")],
        confinement=Confinement(
            writable=(own,), read_only=tuple(Path(str(path)) for path in listed if path and Path(str(path)).exists())
        ),
        cwd=root,
        environment=child_environment(os.environ if inherited is None else inherited, private, given),
        timeout_s=_MINUTES * 60,
    )
    return done.exit_code


def _scores(
    who: str, request: Mapping[str, Any], answer: Any, ids: list[str], *, bounded: bool
) -> tuple[_Scores | None, list[Problem]]:
    if not isinstance(answer, dict):
        return None, [problem(who, "an object", answer, "the evaluator's answer is none")]
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
        problem(f"{who}.{name}", value, answer.get(name), str(answer.get("failure") or "it read something else"))
        for name, value in wanted.items()
        if answer.get(name) != value
    ]
    scores = answer.get("scores")
    given = [item for item in scores if isinstance(item, dict)] if isinstance(scores, list) else []
    values = {str(item.get("id")): item.get("value") for item in given}
    if sorted(values) != sorted(map(str, ids)) or len(given) != len(ids):
        found.append(problem(f"{who}.scores", f"one a row, {len(ids)}", len(given), "missing, extra or twice"))
    bad = [name for name, value in values.items() if not _good(value, bounded=bounded)]
    if bad:
        expected = "a number in [0, 1]" if bounded else "a finite number"
        found.append(problem(f"{who}.scores", expected, values[bad[0]], f"row {bad[0]}"))
    if found:
        return None, found
    margins = {str(item["id"]): float(item["margin"]) for item in given if _good(item.get("margin"), bounded=False)}
    return _Scores(
        values={name: float(value) for name, value in values.items() if value is not None}, margins=margins
    ), []


def _good(value: Any, *, bounded: bool) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return number and (not bounded or 0 <= value <= 1)


def _record(
    project: Project,
    spec: Spec,
    model: Model,
    *,
    against: str,
    mode: EvaluationMode,
    scores: Mapping[str, _Scores],
    problems: list[Problem],
    evidence: dict[str, str],
) -> ModelEvaluation:
    numbers: dict[str, Any] = dict.fromkeys(("baseline", "candidate", "delta", "interval", "margin"))
    verdict, reason, n = Verdict.INCONCLUSIVE, "the evaluator failed: " + "; ".join(map(str, problems)), 0
    if len(scores) == 2 and not problems:
        ids = sorted(scores["candidate"].values)
        pairs = np.array([[scores[who].values[name] for name in ids] for who in ("baseline", "candidate")])
        differences, n = pairs[1] - pairs[0], len(ids)
        low, high = bootstrap_mean(differences, seed=spec.seed)
        margins = list(scores["candidate"].margins.values())
        numbers = {"baseline": float(pairs[0].mean()), "candidate": float(pairs[1].mean())}
        numbers |= {"delta": float(differences.mean()), "interval": [low, high]}
        numbers["margin"] = float(np.mean(margins)) if margins else None
        verdict, reason = verdict_of(numbers["delta"], low, high)
    with project.ledger.transaction() as writer:
        recorded = project.ledger.record_model_evaluation(
            model=model.id,
            against=against,
            benchmark=spec.benchmark,
            mode=mode.value,
            verdict=verdict.value,
            reason=reason[:2000],
            n=n,
            seed=spec.seed,
            evidence=evidence,
            problems=[item.plain() for item in problems],
            **numbers,
        )
        if verdict is Verdict.FAIL and model.state not in _FALLEN:
            for fact in revocation(project, model, ModelState.REVOKED, f"{recorded.id} failed: {reason}", by="harness"):
                writer.append(fact)
    return recorded


def verdict_of(delta: float, low: float, high: float) -> tuple[Verdict, str]:
    """PASS when the difference is large enough and its interval is above 0; FAIL when it is too small or the interval
    is not above 0 though it could have been seen; INCONCLUSIVE when the rows are too few to tell."""
    least = THRESHOLDS.delta
    told = f"delta {delta:+.3f}, interval [{low:+.3f}, {high:+.3f}]"
    if delta >= least and low > 0:
        return Verdict.PASS, f"{told}: at least {least:g}, beyond the interval"
    if delta >= least:
        return Verdict.INCONCLUSIVE, f"{told}: not beyond the interval; more rows would tell"
    return Verdict.FAIL, f"{told}: less than {least:g}"


def revocation(
    project: Project, model: Model, after: ModelState, why: str, *, by: str, decision: str | None = None
) -> list[ModelMoved | ModelServed]:
    """The facts that take a model out of service: it is moved, and the pointer is cleared where it led to it."""
    served = project.ledger.servings(model.profile)
    facts: list[ModelMoved | ModelServed] = [
        ModelMoved(
            model=model.id,
            before=model.state.value,
            after=after.value,
            why=why,
            by=by,
            checks=[],
            evidence={},
            decision=decision,
        )
    ]
    if served and served[-1].model == model.id:
        facts.append(
            ModelServed(
                profile=model.profile, model=None, before=model.id, how="clear", why=why, by=by, decision=decision
            )
        )
    return facts
