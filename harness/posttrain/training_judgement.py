"""Judging a trainer's result and closing its run; and the run's folder before the start."""

from collections.abc import (
    Callable,
    Mapping,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.artifacts.content import (
    hash_file,
    hash_path,
)
from harness.domain.findings import Finding
from harness.domain.plain_text import one_line
from harness.domain.records import Run
from harness.domain.statuses import RunStatus
from harness.errors import (
    HarnessError,
    RefusedError,
)
from harness.files import (
    atomic_write,
    pretty_json,
    walk_files,
)
from harness.ledger.facts import (
    CheckpointRecorded,
    ModelRegistered,
    TrainingJudged,
)
from harness.ledger.project import Project
from harness.posttrain.code_hashes import code_hash
from harness.posttrain.field_problems import (
    FieldProblem,
    FieldProblems,
)
from harness.posttrain.specification import (
    Specification,
    specification_from,
)
from harness.posttrain.validation import (
    Observed,
    ReportedResult,
    changes,
    validate,
)
from harness.posttrain.vocabulary import Backend
from harness.runs.checkpoint_watch import Seen
from harness.runs.closing import (
    close_run,
    read_all,
)
from harness.runs.endings import (
    Ending,
    explain,
    last_lines,
)
from harness.runs.environment import fresh_folder
from harness.runs.origin import origin_findings


@dataclass(frozen=True, kw_only=True)
class ProgramReport:
    run: Run
    model: str | None
    """Content hash of the registered model."""
    problems: tuple[FieldProblem, ...]
    """Problems of the result; none when it is believed."""


def program_spec(project: Project, experiment: str) -> Specification:
    """Raises RefusedError when the experiment is not a training program."""
    project.ledger.experiment(experiment)
    program = project.ledger.program(experiment)
    if program is None:
        raise RefusedError(
            f"{experiment} is not a training program.",
            hint=(
                f"Train it with `harness train {experiment}`, or make one with `harness posttrain"
                " spec`."
            ),
            code="no_training_program",
        )
    return specification_from(program.spec)


def require_not_completed(project: Project, experiment: str) -> None:
    """Raises RefusedError (already_completed)."""
    if any(run.status is RunStatus.COMPLETED for run in project.ledger.runs(experiment)):
        raise RefusedError(
            f"{experiment} has a completed run.",
            hint="Make a new specification.",
            code="already_completed",
        )


def make_folder(project: Project, run: Run) -> float:
    """Make the run's folder with an empty output folder; the file system's time before that."""
    began = fresh_folder(project.layout.run(run.experiment, run.id))
    output_folder(project, run).mkdir()
    return began


def output_folder(project: Project, run: Run) -> Path:
    return project.layout.run(run.experiment, run.id, "checkpoints")


def write_spec(
    project: Project, run: Run, spec: Specification, *, root: Path | None = None
) -> tuple[Path, str]:
    """Write spec.json of the run atomically; its path and the hash of its bytes. `root`: where the
    trainer sees the project, by default where it is."""
    path = project.layout.run(run.experiment, run.id, "spec")
    seen = project.layout.root if root is None else root
    values = spec.for_trainer(seen, experiment=run.experiment, run=run.id)
    atomic_write(path, pretty_json(values))
    return path, hash_file(path)


def known(compute: Callable[[], str]) -> str:
    """What `compute` gives, or why it fails."""
    try:
        return compute()
    except (HarnessError, OSError, ValueError) as error:  # ValueError: a name that is no text
        return str(error)


def hashes_now(project: Project, spec: Specification) -> dict[str, str | None]:
    """Hashes of dataset, base model and trainer code now, or why one cannot be computed."""

    root, path, settings = project.layout.root, spec.model["path"], project.settings
    return {
        "dataset_sha256": known(lambda: hash_file(root / spec.dataset["path"])),
        "base_model_sha256": None if path is None else known(lambda: hash_path(Path(path))),
        "code_hash": known(lambda: code_hash(spec.backend, spec.command, settings)),
    }


def judge_result(
    project: Project,
    run: Run,
    spec: Specification,
    reported: ReportedResult,
    seen: Observed,
    *,
    seconds: float,
    findings: list[Finding] | None = None,
    told: Mapping[str, Seen] | None = None,
) -> ProgramReport:
    """Validate, record, close. `told`: see `close_run`."""
    problems, digest = FieldProblems(reported.problems), None
    if reported.result is None:
        problems += changes(spec, seen)
    else:
        more, digest = validate(spec, reported.result, seen)
        problems += more
    path = seen.output / spec.artifact["path"]
    checkpoint = None
    if digest is not None:
        checkpoint = _checkpoint(project, run, path, digest)
        problems += _origin_problems(project, run, spec, checkpoint, seen)
    failed = reported.result is not None and reported.result.get("status") == "failed"
    accepted = not problems and not failed
    # Judgement, checkpoint and model are one transaction, before the run's end: a kill in between
    # leaves a judged run for recovery to close, never a completed run without a judgement.
    with project.ledger.transaction() as writer:
        writer.append(
            TrainingJudged(
                experiment=run.experiment,
                run=run.id,
                accepted=accepted,
                source=reported.source,
                problems=[problem.plain() for problem in problems],
                result=reported.result,
                artifact=digest,
            )
        )
        if accepted and checkpoint is not None:
            writer.append(checkpoint)
            writer.append(_model(run, spec, checkpoint))
    ending = _ending(project, run, spec, reported, seen, problems, seconds, findings or [])
    closed = close_run(project, run, read_all(project.layout, run), ending, told=told)
    model = checkpoint.checkpoint if accepted and checkpoint else None
    return ProgramReport(run=closed, model=model, problems=tuple(problems))


def _ending(
    project: Project,
    run: Run,
    spec: Specification,
    reported: ReportedResult,
    seen: Observed,
    problems: FieldProblems,
    seconds: float,
    findings: list[Finding],
) -> Ending:
    failure = reported.result.get("failure") if reported.result is not None else None
    if not problems and not failure:
        dry = spec.backend is Backend.DRY_RUN
        reason = "dry run: nothing was trained" if dry else _validated(reported.result or {})
        return Ending(
            status=RunStatus.COMPLETED,
            reason=reason,
            exit_code=seen.exit_code,
            seconds=seconds,
            findings=findings,
        )
    parts = [f"training failed: {failure}"] if failure else []
    if seen.exit_code:
        stderr = project.layout.run(run.experiment, run.id, "stderr")
        parts.append(explain(seen.exit_code, last_lines(stderr)))
    if problems:
        parts.append(f"validation failed: {'; '.join(map(str, problems))}")
    rejected = Finding(
        "result_rejected",
        f"The result of {run.experiment}/{run.id} was rejected: {parts[-1]}",
        "Correct the trainer, then run it again.",
        {"problems": [problem.plain() for problem in problems]},
    )
    return Ending(
        status=RunStatus.FAILED,
        reason="; ".join(parts)[:2000],
        exit_code=seen.exit_code,
        seconds=seconds,
        findings=[rejected, *findings] if problems else findings,
    )


def _validated(result: Mapping[str, Any]) -> str:
    """With the rows that the trainer left out: a run that trained on few is to be noticed."""
    refused = result["rows_refused"]
    if not sum(refused.values()):
        return "its result was validated"
    named = ", ".join(
        f"{one_line(reason, 60)} ({count})" for reason, count in sorted(refused.items())[:5]
    )
    used, rows = result["rows_used"], result["dataset_rows"]
    return f"its result was validated; trained on {used} of {rows} rows, left out: {named}"


def _checkpoint(project: Project, run: Run, path: Path, digest: str) -> CheckpointRecorded:
    return CheckpointRecorded(
        experiment=run.experiment,
        run=run.id,
        checkpoint=digest,
        path=project.layout.relative(path),
        bytes=sum(file.lstat().st_size for file in walk_files(path)),
        epoch=None,
        final=True,
    )


def _origin_problems(
    project: Project,
    run: Run,
    spec: Specification,
    checkpoint: CheckpointRecorded,
    seen: Observed,
) -> FieldProblems:
    """Weights that were there before the run, and weights of another program."""
    problems = FieldProblems()
    trained_here = seen.exit_code is not None
    if trained_here:
        for finding in origin_findings(project, run, checkpoint, seen.began, []):
            problems.add("artifact", "weights that this run made", finding.code, finding.message)
    for model in project.ledger.models():
        if model.id != checkpoint.checkpoint or model.experiment == run.experiment:
            continue
        program = project.ledger.program(model.experiment)
        # The same specification may give the same bytes again; another one may not.
        if program is None or program.sha256 != spec.sha256:
            reason = f"those of {model.experiment}"
            problems.add("artifact", "weights of its own", model.id[:12], reason)
    return problems


def _model(run: Run, spec: Specification, checkpoint: CheckpointRecorded) -> ModelRegistered:
    return ModelRegistered(
        model=checkpoint.checkpoint,
        experiment=run.experiment,
        run=run.id,
        profile=spec.profile.value,
        path=checkpoint.path,
        format=spec.artifact["format"],
        base=spec.model,
    )
