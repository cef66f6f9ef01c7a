"""One evaluation of a model: baseline and candidate on the same held-out rows.

The harness starts the evaluator that a person approved, in the code that was approved. An
evaluator's failure is INCONCLUSIVE, never a score.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from harness.artifacts.objects import (
    load_object,
    restore_object,
    store_bytes,
)
from harness.domain.models import BASE
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import RunStatus
from harness.errors import (
    RefusedError,
    UsageError,
)
from harness.files import (
    canonical_json,
    sha256_bytes,
)
from harness.ledger.facts import (
    BenchmarkApproved,
    Model,
    ModelEvaluation,
)
from harness.ledger.project import Project
from harness.plans.judge import require_judge
from harness.posttrain.benchmark_approval import require_approved
from harness.posttrain.code_hashes import builtin_hash
from harness.posttrain.evaluation_record import (
    Look,
    in_its_words,
    record,
)
from harness.posttrain.evaluator_process import (
    Scores,
    ask_evaluator,
)
from harness.posttrain.field_problems import FieldProblems
from harness.posttrain.promotion import intact
from harness.posttrain.specification import Specification
from harness.posttrain.training_judgement import program_spec
from harness.posttrain.untrusted_json import parse_json_lines
from harness.posttrain.vocabulary import EvaluationMode


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
    A FAIL revokes the model and stops it from being served. Why an evaluator failed is told a
    person in its words, an agent and the ledger by the error's type: they could carry rows.

    Raises RefusedError when its run is not completed, nobody approved benchmark and evaluator, a
    file has changed, or `against` has another base; UsageError when the mode needs guidance and no
    row has any.
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
    approved = require_approved(project, spec)
    rows, evidence = _rows(project, approved, mode)
    evidence |= {"model": model.id, "approval": approved.sha256}
    evidence["evaluator"] = _evaluator(approved)
    adapters = {"baseline": _adapter(project, other), "candidate": _adapter(project, model)}
    scores, problems = _ask(project, approved, spec, mode, rows, adapters, sandbox, inherited)
    evidence |= {
        f"{who}_scores": store_bytes(canonical_json(scored.values), project.layout.objects)
        for who, scored in scores.items()
    }
    look = Look(
        approved=approved,
        spec=spec,
        mode=mode.value,
        against=other.id if other else BASE,
        sandbox=sandbox.kind,
        caller=project.caller_for(model.experiment),
    )
    recorded = record(project, look, model, scores=scores, problems=problems, evidence=evidence)
    if project.caller.agent or not problems:
        return recorded
    return in_its_words(recorded, problems)


def _ask(
    project: Project,
    approved: BenchmarkApproved,
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
                project, approved, spec, mode, folder, who, adapter, sandbox, inherited
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


def _evaluator(approved: BenchmarkApproved) -> str:
    """The hash of the evaluator's code."""
    named = approved.evaluator
    return builtin_hash(named) if isinstance(named, str) else str(named["code_hash"])


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
    project: Project, approved: BenchmarkApproved, mode: EvaluationMode
) -> tuple[bytes, dict[str, str]]:
    """The approved rows, as the vault has them, in the mode's form; the modes differ by the
    guidance only."""
    digest, named = str(approved.benchmark["sha256"]), str(approved.benchmark["path"])
    layout = project.layout
    if not (layout.objects / digest).is_file():  # a clone, whose vault does not have it yet
        restore_object(layout.objects, digest, layout.root / named)
    rows = parse_json_lines(load_object(layout.objects, digest), named)
    assisted = mode is EvaluationMode.PROMPT_ASSISTED
    if assisted and not any(str(row.get("guidance") or "").strip() for row in rows):
        raise UsageError(
            "No row of the benchmark has `guidance`: both modes would be the same.",
            hint="Use the mode reduced_prompt.",
        )
    shown = []
    for row in rows:
        plain = {name: value for name, value in row.items() if name != "guidance"}
        guidance = str(row.get("guidance") or "").strip()
        if assisted and guidance:
            plain["prompt"] = f"{guidance}\n\n{row['prompt']}"
        shown.append(canonical_json(plain) + b"\n")
    data = b"".join(shown)
    return data, {"benchmark": digest, "rows": sha256_bytes(data)}
