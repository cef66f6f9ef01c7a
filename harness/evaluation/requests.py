"""What predict is asked, from a run's facts and the approved plan."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts.code_snapshot import Snapshot, load_snapshot
from harness.artifacts.libraries import Libraries
from harness.domain.records import Run
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import SandboxKind, Split
from harness.evaluation.byte_code import compiled
from harness.evaluation.evaluate_run import EvaluationRequest
from harness.evaluation.libraries import OwnLibraries, modules_of
from harness.evaluation.predict import PredictLimits
from harness.evaluation.scores import trained_seconds
from harness.evaluation.scoring import scorer_of
from harness.evaluation.split_rows import table_of
from harness.ledger.facts import ApprovedPlan, Checkpoint
from harness.ledger.project import Project
from harness.plans.approved import data_paths, deterministic, secret
from harness.plans.parse import Plan
from harness.settings import granted, require_interpreter

_LEAST_PREDICT_S, _MOST_PREDICT_S = 60.0, 600.0


@dataclass(frozen=True, kw_only=True)
class EvaluationJob:
    project: Project
    approved: ApprovedPlan
    plan: Plan
    split: Split
    shuffle_seed: int
    environment: Mapping[str, str]
    libraries: OwnLibraries
    before_predict: Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which weights, and by which code."""

    code: Snapshot
    checkpoint: Path
    sha256: str
    seed: int
    seconds: float
    """That one call of predict may take."""


def asked_of(job: EvaluationJob, run: Run, checkpoint: Checkpoint) -> Asked:
    """A run's checkpoint, and the code that is registered with the run."""
    layout = job.project.layout
    return Asked(
        code=load_snapshot(layout.objects, run.code),
        checkpoint=layout.root / checkpoint.path,
        sha256=checkpoint.id,
        seed=run.seed,
        seconds=predict_limit(job.plan, trained_seconds(job.project.ledger, run)),
    )


def request_of(
    job: EvaluationJob,
    asked: Asked,
    sandbox: Sandbox,
    *,
    libraries: Libraries | None,
) -> EvaluationRequest:
    """`libraries`: as they are now. No ledger is read, in whatever thread this is."""
    project, layout = job.project, job.project.layout
    columns = job.approved.splits[job.split.value]
    return EvaluationRequest(
        split=job.split,
        sealed=secret(job.approved, job.split.value),
        table=table_of(project, job.approved, job.split.value),
        train=table_of(project, job.approved, "train"),
        inputs=tuple(columns["inputs"]),
        label=columns["label"],
        id_column=columns["id"],
        group=columns.get("group"),
        metric=job.plan.oracle.metric,
        scorer=scorer_of(job.approved, layout.scorers),
        predict=tuple(shlex.split(job.plan.oracle.predict)),
        interpreter=require_interpreter(project.settings),
        snapshot=asked.code,
        data_files=data_paths(job.approved),
        objects=layout.objects,
        checkpoint=asked.checkpoint,
        checkpoint_hash=asked.sha256,
        seed=asked.seed,
        deterministic=deterministic(job.approved),
        root=layout.root,
        work=layout.state / "work",
        shuffle_seed=job.shuffle_seed,
        environment=job.environment,
        readable=granted(project.settings),
        limits=PredictLimits(predict_seconds=asked.seconds),
        byte_code=_byte_code(job, libraries, asked.code.hash, sandbox),
        hidden=(layout.state, *_not_shown(job, asked.code.hash, sandbox)),
        before_predict=job.before_predict,
    )


def _byte_code(
    job: EvaluationJob, libraries: Libraries | None, code: str, sandbox: Sandbox
) -> Path | None:
    """None where nobody who is judged writes beside the sources."""
    layout, program = job.project.layout, job.libraries.program
    if libraries is None or program is None:
        return None
    modules = modules_of(layout.objects, code)
    place = layout.byte_code / libraries.signature
    return compiled(place, program, modules, sandbox, work=layout.state / "work")


def _not_shown(job: EvaluationJob, code: str, sandbox: Sandbox) -> tuple[Path, ...]:
    """Landlock can hide nothing below what it grants."""
    return job.libraries.installers(code) if sandbox.kind is SandboxKind.BWRAP else ()


def predict_limit(plan: Plan, trained: float) -> float:
    """Seconds that one call of predict may take: what the plan says, else as long as the training
    took, within bounds."""
    if plan.oracle.predict_minutes is not None:
        return plan.oracle.predict_minutes * 60
    return min(max(trained, _LEAST_PREDICT_S), _MOST_PREDICT_S)
