"""One evaluation of a model: baseline and candidate on the same held-out rows, by the evaluator
that the specification names, started by the harness. An evaluator's failure is INCONCLUSIVE, never
a score."""

import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.artifacts.content import hash_file
from harness.domain.models import BASE, Model, ModelEvaluation, ModelState
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import RunStatus, SandboxKind, Verdict
from harness.errors import RefusedError, UsageError
from harness.files import canonical_json, sha256_bytes
from harness.ledger.project import Project
from harness.posttrain.comparison import compare, verdict_of
from harness.posttrain.evaluator import Scores, ask_evaluator
from harness.posttrain.fingerprints import evaluator_hash, rows_of
from harness.posttrain.judge import program_spec
from harness.posttrain.problems import Problem, problem
from harness.posttrain.serving import intact, revocation
from harness.posttrain.spec import Spec
from harness.posttrain.vocabulary import EvaluationMode

_FALLEN = frozenset({ModelState.REJECTED, ModelState.REVOKED})


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

    A FAIL revokes what the model had earned and stops it from being served, in the same step.
    Raises RefusedError when the run that made it is not completed, a file or the evaluator's code
    is not what it was, or `against` cannot be compared with it, UsageError when the mode shows no
    guidance.
    """
    model = project.ledger.model(identifier)
    spec = program_spec(project, model.experiment)
    if project.ledger.run(model.experiment, model.run).status is not RunStatus.COMPLETED:
        raise RefusedError(
            f"{model.experiment}/{model.run} is not completed.",
            hint="Recover it: `harness continue`.",
        )
    other = None if against is None else _other(project, model, against)
    rows, evidence = _rows(project, spec, mode)
    evidence |= {"model": model.id, "evaluator": _evaluator(project, spec)}
    adapters = {"baseline": _adapter(project, other), "candidate": _adapter(project, model)}
    scores, problems = _ask(project, spec, mode, rows, adapters, sandbox, inherited)
    if (now := evaluator_hash(spec.benchmark["evaluator"], project.layout.root)) != evidence[
        "evaluator"
    ]:
        problems.append(
            problem("evaluator", evidence["evaluator"], now, "its code changed while it scored")
        )
    evidence |= {
        f"{who}_scores": sha256_bytes(canonical_json(told.values)) for who, told in scores.items()
    }
    return _record(
        project,
        spec,
        model,
        against=other.id if other else BASE,
        mode=mode,
        scores=scores,
        problems=problems,
        evidence=evidence,
        sandbox=sandbox.kind,
    )


def _ask(
    project: Project,
    spec: Spec,
    mode: EvaluationMode,
    rows: bytes,
    adapters: Mapping[str, dict[str, str] | None],
    sandbox: Sandbox,
    inherited: Mapping[str, str] | None,
) -> tuple[dict[str, Scores], list[Problem]]:
    """What each of "baseline" and "candidate" scored, as far as the evaluator's answer is one, and
    what is wrong."""
    scores: dict[str, Scores] = {}
    problems: list[Problem] = []
    with tempfile.TemporaryDirectory(prefix="harness-posttrain-") as name:
        folder = Path(name).resolve()
        (folder / "rows.jsonl").write_bytes(rows)
        for who, adapter in adapters.items():
            told, found = ask_evaluator(
                project, spec, mode, folder, who, adapter, sandbox, inherited
            )
            problems += found
            if told is not None:
                scores[who] = told
    return scores, problems


def _adapter(project: Project, model: Model | None) -> dict[str, str] | None:
    """None for the base model."""
    if model is None:
        return None
    return {"path": str(intact(project, model)), "format": model.format, "sha256": model.id}


def _evaluator(project: Project, spec: Spec) -> str:
    """The hash of its code. Raises RefusedError when a program of the project is not what was
    specified."""
    named = spec.benchmark["evaluator"]
    now = evaluator_hash(named, project.layout.root)
    if not isinstance(named, str) and now != (specified := named.get("code_hash")):
        raise RefusedError(
            f"The evaluator {' '.join(named['command'])} is {now[:12]}, and {str(specified)[:12]}"
            " was specified.",
            hint="Restore it and what it imports, or make a new specification.",
            code="evaluator_changed",
        )
    return now


def _other(project: Project, model: Model, name: str) -> Model:
    """Another model of the same base: an adapter on another base is another model than the one that
    was registered."""
    other = project.ledger.model(name)
    if other.id == model.id or other.base["sha256"] != model.base["sha256"]:
        raise RefusedError(
            f"Model {other.id[:12]} is"
            f" {'the same' if other.id == model.id else 'of another base'}.",
            hint=(
                "Give another model of the same base, or leave --against out: the base itself is"
                " the baseline then."
            ),
            code="not_comparable",
        )
    return other


def _rows(project: Project, spec: Spec, mode: EvaluationMode) -> tuple[bytes, dict[str, str]]:
    """The benchmark's rows in the mode's form: the only difference between the modes is the
    guidance."""
    path = project.layout.root / spec.benchmark["path"]
    if (digest := hash_file(path)) != spec.benchmark["sha256"]:
        raise RefusedError(
            f"{path} is not what was specified.", hint="Restore it.", code="benchmark_changed"
        )
    _, rows = rows_of(path)
    assisted = mode is EvaluationMode.PROMPT_ASSISTED
    if assisted and not any(str(row.get("guidance") or "").strip() for row in rows):
        raise UsageError(
            "No row of the benchmark has `guidance`: both modes would be the same.",
            hint="Use the other.",
        )
    if len({row["id"] for row in rows}) != len(rows):
        raise UsageError("Two rows of the benchmark have the same id.", hint="Give each its own.")
    shown = []
    for row in rows:
        plain = {name: value for name, value in row.items() if name != "guidance"}
        guidance = str(row.get("guidance") or "").strip()
        if assisted and guidance:
            plain["prompt"] = f"{guidance}\n\n{row['prompt']}"
        shown.append(canonical_json(plain) + b"\n")
    data = b"".join(shown)
    return data, {"benchmark": digest, "rows": sha256_bytes(data)}


def _record(
    project: Project,
    spec: Spec,
    model: Model,
    *,
    against: str,
    mode: EvaluationMode,
    scores: Mapping[str, Scores],
    problems: list[Problem],
    evidence: dict[str, str],
    sandbox: SandboxKind,
) -> ModelEvaluation:
    numbers: dict[str, Any] = dict.fromkeys(
        ("baseline", "candidate", "delta", "interval", "margin")
    ) | {"n": 0}
    verdict, reason = Verdict.INCONCLUSIVE, "the evaluator failed: " + "; ".join(map(str, problems))
    if len(scores) == 2 and not problems:
        found = compare(scores, seed=spec.seed)
        numbers = asdict(found) | {"interval": list(found.interval)}
        verdict, reason = verdict_of(found.delta, *found.interval, found.n)
    if sandbox is SandboxKind.NONE:
        reason = f"not isolated; {reason}"
    with project.ledger.transaction() as writer:
        model = project.ledger.model(
            model.id
        )  # scoring took minutes: a person may have rejected it meanwhile
        recorded = project.ledger.record_model_evaluation(
            model=model.id,
            against=against,
            benchmark=spec.benchmark,
            mode=mode.value,
            verdict=verdict.value,
            reason=reason[:2000],
            seed=spec.seed,
            evidence=evidence,
            sandbox=sandbox.value,
            problems=[item.plain() for item in problems],
            **numbers,
        )
        if verdict is Verdict.FAIL and model.state not in _FALLEN:
            for fact in revocation(
                project, model, ModelState.REVOKED, f"{recorded.id} failed: {reason}", by="harness"
            ):
                writer.append(fact)
    return recorded
