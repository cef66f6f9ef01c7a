"""A trainer's result judged, recorded and the run closed; and what a run's folder holds before it
starts."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.artifacts.content import hash_file, hash_path
from harness.domain.facts import CheckpointRecorded
from harness.domain.findings import Finding
from harness.domain.program_facts import ModelRegistered, TrainingJudged
from harness.domain.records import Run
from harness.domain.statuses import RunStatus
from harness.errors import HarnessError, RefusedError
from harness.files import atomic_write, pretty_json, walk_files
from harness.ledger.project import Project
from harness.posttrain.fingerprints import code_hash
from harness.posttrain.problems import Problem, problem
from harness.posttrain.result import Observed, Read, changes, validate
from harness.posttrain.spec import Spec, spec_from
from harness.posttrain.vocabulary import Backend
from harness.runs.collect import Ending, close_run, read_all
from harness.runs.folder import fresh_folder
from harness.runs.origin import origin_findings
from harness.runs.reasons import explain, last_lines


@dataclass(frozen=True, kw_only=True)
class ProgramReport:
    run: Run
    model: str | None
    """Content hash of the model that was registered."""
    problems: tuple[Problem, ...]
    """Of the result; none when it is believed."""


def program_spec(project: Project, experiment: str) -> Spec:
    """Raises RefusedError when the experiment is no training program."""
    project.ledger.experiment(experiment)
    program = project.ledger.program(experiment)
    if program is None:
        raise RefusedError(
            f"{experiment} is no training program.",
            hint=(
                f"Train it with `harness train {experiment}`, or make one with `harness posttrain"
                " spec`."
            ),
            code="no_training_program",
        )
    return spec_from(program.spec)


def require_not_completed(project: Project, experiment: str) -> None:
    """Raises RefusedError (already_completed)."""
    if any(run.status is RunStatus.COMPLETED for run in project.ledger.runs(experiment)):
        raise RefusedError(
            f"{experiment} has a completed run.",
            hint="Make a new specification.",
            code="already_completed",
        )


def make_folder(project: Project, run: Run) -> float:
    """The run's, with an empty output folder, and the file system's time before anything was
    started."""
    began = fresh_folder(project.layout.run(run.experiment, run.id))
    output_folder(project, run).mkdir()
    return began


def output_folder(project: Project, run: Run) -> Path:
    return project.layout.run(run.experiment, run.id, "checkpoints")


def write_spec(project: Project, run: Run, spec: Spec) -> tuple[Path, str]:
    """spec.json of the run, whole in one step, and the hash of its bytes."""
    path = project.layout.run(run.experiment, run.id, "spec")
    data = pretty_json(
        spec.told(project.layout.root, experiment=run.experiment, run=run.id)
    ).encode()
    atomic_write(path, data)
    return path, hash_file(path)


def hashes_now(project: Project, spec: Spec) -> dict[str, str | None]:
    """Dataset, base model and trainer as they are now; in a hash's place the reason where there is
    none."""

    def known(ask: Callable[[], str]) -> str:
        try:
            return ask()
        except (HarnessError, OSError, ValueError) as error:  # a name that is no text, too
            return str(error)

    root, path = project.layout.root, spec.model["path"]
    return {
        "dataset_sha256": known(lambda: hash_file(root / spec.dataset["path"])),
        "base_model_sha256": None if path is None else known(lambda: hash_path(Path(path))),
        "code_hash": known(lambda: code_hash(spec.backend, spec.command, root)),
    }


def judge_result(
    project: Project,
    run: Run,
    spec: Spec,
    read: Read,
    seen: Observed,
    *,
    seconds: float,
    findings: list[Finding] | None = None,
) -> ProgramReport:
    """Validate, record, close. Judgement, checkpoint and model are one step of the ledger, before
    the run's end."""
    problems, digest = list(read.problems), None
    if read.result is None:
        problems += changes(spec, seen)
    else:
        more, digest = validate(spec, read.result, seen)
        problems += more
    path = seen.output / spec.artifact["path"]
    checkpoint = None
    if digest is not None:
        checkpoint = _checkpoint(project, run, path, digest)
        problems += _origin(project, run, spec, checkpoint, seen)
    failed = read.result is not None and read.result.get("status") == "failed"
    accepted = not problems and not failed
    with project.ledger.transaction() as writer:
        writer.append(
            TrainingJudged(
                experiment=run.experiment,
                run=run.id,
                accepted=accepted,
                source=read.source,
                problems=[item.plain() for item in problems],
                result=read.result,
                artifact=digest,
            )
        )
        if accepted and checkpoint is not None:
            writer.append(checkpoint)
            writer.append(_model(run, spec, checkpoint))
    ending = _ending(project, run, spec, read, seen, problems, seconds, findings or [])
    closed = close_run(project, run, read_all(project.layout, run), ending)
    model = checkpoint.checkpoint if accepted and checkpoint else None
    return ProgramReport(run=closed, model=model, problems=tuple(problems))


def _ending(
    project: Project,
    run: Run,
    spec: Spec,
    read: Read,
    seen: Observed,
    problems: list[Problem],
    seconds: float,
    findings: list[Finding],
) -> Ending:
    told = read.result.get("failure") if read.result is not None else None
    if not problems and not told:
        reason = (
            "its result was validated"
            if spec.backend is not Backend.DRY_RUN
            else "dry run: nothing was made"
        )
        return Ending(
            status=RunStatus.COMPLETED,
            reason=reason,
            exit_code=seen.exit_code,
            seconds=seconds,
            findings=findings,
        )
    parts = [f"training failed: {told}"] if told else []
    if seen.exit_code not in (0, None):
        parts.append(
            explain(
                seen.exit_code or 0,
                last_lines(project.layout.run(run.experiment, run.id, "stderr")),
            )
        )
    if problems:
        parts.append(f"validation failed: {'; '.join(map(str, problems))}")
    rejected = Finding(
        "result_rejected",
        f"The result of {run.experiment}/{run.id} is not believed: {parts[-1]}",
        "Correct the trainer, then run it again.",
        {"problems": [item.plain() for item in problems]},
    )
    return Ending(
        status=RunStatus.FAILED,
        reason="; ".join(parts)[:2000],
        exit_code=seen.exit_code,
        seconds=seconds,
        findings=[rejected, *findings] if problems else findings,
    )


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


def _origin(
    project: Project, run: Run, spec: Spec, checkpoint: CheckpointRecorded, seen: Observed
) -> list[Problem]:
    """Weights that stood there before the run are not its own, and neither are another
    program's."""
    trained_here = seen.exit_code is not None
    found = [
        problem("artifact", "weights that this run made", item.code, item.message)
        for item in (
            origin_findings(project, run, checkpoint, seen.began, []) if trained_here else []
        )
    ]
    others = [model for model in project.ledger.models() if model.id == checkpoint.checkpoint]
    for model in (model for model in others if model.experiment != run.experiment):
        program = project.ledger.program(model.experiment)
        if program is None or program.sha256 != spec.sha256:
            found.append(
                problem(
                    "artifact", "weights of its own", model.id[:12], f"those of {model.experiment}"
                )
            )
    return found


def _model(run: Run, spec: Spec, checkpoint: CheckpointRecorded) -> ModelRegistered:
    return ModelRegistered(
        model=checkpoint.checkpoint,
        experiment=run.experiment,
        run=run.id,
        profile=spec.profile.value,
        path=checkpoint.path,
        format=spec.artifact["format"],
        base=spec.model,
    )
