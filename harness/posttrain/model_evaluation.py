"""One evaluation of a model: baseline and candidate on the same held-out rows.

The harness starts the evaluator that the specification names. An evaluator's failure is
INCONCLUSIVE, never a score.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.artifacts.content import hash_file
from harness.domain.grade import Caller, grade_of
from harness.domain.models import BASE, ModelState
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import RunStatus, SandboxKind, Verdict
from harness.errors import RefusedError, UsageError
from harness.evaluation.intervals import mean_interval
from harness.files import canonical_json, sha256_bytes
from harness.ledger.facts import Model, ModelEvaluation
from harness.ledger.project import Project
from harness.plans.judge import require_judge
from harness.posttrain.code_hashes import evaluator_hash
from harness.posttrain.evaluator_process import Scores, ask_evaluator
from harness.posttrain.field_problems import FieldProblems
from harness.posttrain.promotion import intact, revocation
from harness.posttrain.specification import Specification
from harness.posttrain.training_judgement import program_spec
from harness.posttrain.untrusted_json import read_json_lines
from harness.posttrain.vocabulary import THRESHOLDS, EvaluationMode

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
    A FAIL revokes the model and stops it from being served.

    Raises RefusedError when its run is not completed, a file or the evaluator's code has changed,
    or `against` has another base; UsageError when the mode needs guidance and no row has any.
    """
    model = project.ledger.model(identifier)
    require_judge(project)
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
    # Hashed again: a program of the project may change its own files while it runs.
    before = evidence["evaluator"]
    now = evaluator_hash(spec.benchmark["evaluator"], project.layout.root)
    if now != before:
        problems.add("evaluator", before, now, "its code changed while it scored")
    evidence |= {
        f"{who}_scores": sha256_bytes(canonical_json(scored.values))
        for who, scored in scores.items()
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
    spec: Specification,
    mode: EvaluationMode,
    rows: bytes,
    adapters: Mapping[str, dict[str, str] | None],
    sandbox: Sandbox,
    inherited: Mapping[str, str] | None,
) -> tuple[dict[str, Scores], FieldProblems]:
    """The valid scores of "baseline" and "candidate", and the problems of the answers."""
    scores: dict[str, Scores] = {}
    problems = FieldProblems()
    with tempfile.TemporaryDirectory(prefix="harness-posttrain-") as name:
        folder = Path(name).resolve()
        (folder / "rows.jsonl").write_bytes(rows)
        for who, adapter in adapters.items():
            scored, more = ask_evaluator(
                project, spec, mode, folder, who, adapter, sandbox, inherited
            )
            problems += more
            if scored is not None:
                scores[who] = scored
    return scores, problems


def _adapter(project: Project, model: Model | None) -> dict[str, str] | None:
    """None for the base model."""
    if model is None:
        return None
    return {"path": str(intact(project, model)), "format": model.format, "sha256": model.id}


def _evaluator(project: Project, spec: Specification) -> str:
    """The hash of the evaluator's code. Raises RefusedError (evaluator_changed)."""
    named = spec.benchmark["evaluator"]
    now = evaluator_hash(named, project.layout.root)
    if not isinstance(named, str) and now != (specified := named.get("code_hash")):
        raise RefusedError(
            f"The code of the evaluator {' '.join(named['command'])} is {now[:12]};"
            f" {str(specified)[:12]} was specified.",
            hint="Restore it and what it imports, or make a new specification.",
            code="evaluator_changed",
        )
    return now


def _other(project: Project, model: Model, name: str) -> Model:
    """The model to compare with. Raises RefusedError (not_comparable)."""
    # The evaluator loads one base for both: on it an adapter of another base is another model.
    other = project.ledger.model(name)
    if other.id == model.id or other.base["sha256"] != model.base["sha256"]:
        raise RefusedError(
            f"Model {other.id[:12]} is"
            f" {'the same' if other.id == model.id else 'of another base'}.",
            hint=(
                "Name another model of the same base, or leave --against out: then the baseline is"
                " the base itself."
            ),
            code="not_comparable",
        )
    return other


def _rows(
    project: Project, spec: Specification, mode: EvaluationMode
) -> tuple[bytes, dict[str, str]]:
    """The benchmark's rows in the mode's form; the modes differ by the guidance only."""
    path = project.layout.root / spec.benchmark["path"]
    if (digest := hash_file(path)) != spec.benchmark["sha256"]:
        raise RefusedError(
            f"{path} is not what was specified.", hint="Restore it.", code="benchmark_changed"
        )
    _, rows = read_json_lines(path)
    assisted = mode is EvaluationMode.PROMPT_ASSISTED
    if assisted and not any(str(row.get("guidance") or "").strip() for row in rows):
        raise UsageError(
            "No row of the benchmark has `guidance`: both modes would be the same.",
            hint="Use the mode reduced_prompt.",
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
    spec: Specification,
    model: Model,
    *,
    against: str,
    mode: EvaluationMode,
    scores: Mapping[str, Scores],
    problems: FieldProblems,
    evidence: dict[str, str],
    sandbox: SandboxKind,
) -> ModelEvaluation:
    numbers: dict[str, Any] = dict.fromkeys(
        ("baseline", "candidate", "delta", "interval", "margin")
    ) | {"n": 0}
    verdict, reason = Verdict.INCONCLUSIVE, "the evaluator failed: " + "; ".join(map(str, problems))
    if len(scores) == 2 and not problems:
        paired = compare(scores)
        numbers = asdict(paired) | {"interval": list(paired.interval)}
        verdict, reason = verdict_of(paired.delta, *paired.interval, paired.n)
    run, caller = (
        project.ledger.run(model.experiment, model.run),
        project.caller_for(model.experiment),
    )
    grade = grade_of([Caller.read(run.caller), caller], [run.sandbox], [sandbox])
    if grade.not_isolated:
        reason = f"{grade.lacks}; {reason}"
    with project.ledger.transaction() as writer:
        # Read again: scoring took minutes, and a person may have rejected the model meanwhile.
        model = project.ledger.model(model.id)
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
            caller=str(caller),
            problems=[problem.plain() for problem in problems],
            **numbers,
        )
        # In the same transaction: a model that fails is not served for a moment longer.
        if verdict is Verdict.FAIL and model.state not in _FALLEN:
            for fact in revocation(
                project, model, ModelState.REVOKED, f"{recorded.id} failed: {reason}", by="harness"
            ):
                writer.append(fact)
    return recorded


@dataclass(frozen=True, kw_only=True)
class PairedComparison:
    """Candidate against baseline on the same rows: means over the rows, in the evaluator's unit."""

    baseline: float
    candidate: float
    delta: float
    interval: tuple[float, float]
    """95% interval of delta."""
    margin: float | None
    """The candidate's mean margin; None where the evaluator gives none."""
    n: int


def compare(scores: Mapping[str, Scores]) -> PairedComparison:
    """Compare by the differences of the same rows; "baseline" and "candidate" have the same row
    ids."""
    ids = sorted(scores["candidate"].values)
    pairs = np.array(
        [[scores[who].values[name] for name in ids] for who in ("baseline", "candidate")]
    )
    # What makes a row hard for both models is no part of the interval of the differences. With few
    # rows it is too narrow, hence THRESHOLDS.rows.
    differences = pairs[1] - pairs[0]
    delta = float(differences.mean())
    margins = list(scores["candidate"].margins.values())
    return PairedComparison(
        baseline=float(pairs[0].mean()),
        candidate=float(pairs[1].mean()),
        delta=delta,
        interval=mean_interval(differences) or (delta, delta),
        margin=float(np.mean(margins)) if margins else None,
        n=len(ids),
    )


def verdict_of(delta: float, low: float, high: float, n: int) -> tuple[Verdict, str]:
    """PASS when delta is large enough and its interval [low, high] lies above 0, FAIL when delta is
    too small, INCONCLUSIVE when the n rows are too few or the interval includes 0."""
    least = THRESHOLDS.delta
    measured = f"delta {delta:+.3f}, interval [{low:+.3f}, {high:+.3f}]"
    if n < THRESHOLDS.rows:
        return Verdict.INCONCLUSIVE, f"{measured}: {n} rows, fewer than {THRESHOLDS.rows}"
    if delta < least:
        return Verdict.FAIL, f"{measured}: less than {least:g}"
    if low > 0:
        return Verdict.PASS, f"{measured}: at least {least:g}, and the interval lies above 0"
    return Verdict.INCONCLUSIVE, f"{measured}: the interval includes 0; more rows would decide"
