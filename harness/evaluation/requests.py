"""What predict is asked for, from a run's facts and the approved plan; and what it is not asked
again.

A failed repeat stands: what predict answered otherwise the second time, or whatever its weights,
has no score until code or weights change. Asked again and again, it would pass by luck.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from harness.artifacts.code_snapshot import Snapshot, load_snapshot
from harness.artifacts.libraries import Libraries
from harness.domain.records import Run
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import SandboxKind, Split
from harness.evaluation import problems
from harness.evaluation.byte_code import compiled
from harness.evaluation.evaluate_run import EvaluationRequest
from harness.evaluation.predict import PredictLimits
from harness.evaluation.predict_sources import OwnLibraries, modules_of
from harness.evaluation.scores import trained_seconds
from harness.evaluation.scoring import scorer_of
from harness.evaluation.split_rows import table_of
from harness.ledger.facts import ApprovedPlan, Checkpoint, Evaluation, EvaluationRecorded
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


def not_failed(
    project: Project,
    approved: ApprovedPlan,
    split: Split,
    due: Sequence[tuple[Run, Checkpoint]],
) -> list[tuple[Run, Checkpoint]]:
    """Those of `due` that predict is to be asked for. A failure of the same checkpoint, code,
    scorer and command under another run or version of the plan is recorded for this one too; under
    another plan, whose rows are others, it says nothing."""
    asked = []
    for run, checkpoint in due:
        failed = _failed_before(project, approved, split, run, checkpoint)
        if failed is None:
            asked.append((run, checkpoint))
        elif _of(failed) != (run.experiment, run.id, approved.comparison):
            caller = str(project.caller_for(run.experiment))
            same = {part.name: getattr(failed, part.name) for part in fields(EvaluationRecorded)}
            own = {"experiment": run.experiment, "run": run.id, "seed": run.seed}
            now = {"plan_version": approved.comparison, "query": 0, "caller": caller}
            project.ledger.append(EvaluationRecorded(**{**same, **own, **now}))
    return asked


def _failed_before(
    project: Project, approved: ApprovedPlan, split: Split, run: Run, checkpoint: Checkpoint
) -> Evaluation | None:
    """The newest such failure, if any; before others one of this run under this version."""
    commands = {
        plan.version: plan.content["oracle"]["predict"]
        for plan in project.ledger.plans()
        if plan.name == approved.name
    }
    wanted = (checkpoint.id, run.code, scorer_of(approved).hash(), commands[approved.comparison])
    failed = [
        made
        for experiment in sorted(
            {point.experiment for point in project.ledger.with_checkpoint(checkpoint.id)}
        )
        # Each plan counts its versions from 1.
        if project.ledger.experiment(experiment).plan == approved.name
        for made in project.ledger.evaluations(experiment, split)
        if (made.checkpoint, made.code, made.scorer, commands.get(made.plan_version)) == wanted
        and any(finding.code in problems.STANDING for finding in made.findings)
    ]
    mine = [made for made in failed if _of(made) == (run.experiment, run.id, approved.comparison)]
    chosen = mine or failed
    return chosen[-1] if chosen else None


def _of(made: Evaluation) -> tuple[str, str, int]:
    return made.experiment, made.run, made.plan_version
