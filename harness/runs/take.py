"""`harness train EXP --from OTHER`: another experiment's kept checkpoints become this one's, for an
experiment that changes only predict; of several experiments together, for an ensemble.

Nothing is trained. Each seed gets a run whose facts name the runs that trained its weights; these
runs' rows and findings are its evidence.
"""

import functools
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.artifacts.code_snapshot import write_snapshot
from harness.artifacts.commit_snapshot import commit_of
from harness.artifacts.content import hash_path
from harness.domain.grade import Caller, weakest
from harness.domain.records import TAKEN, Run
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import RunStatus, SandboxKind
from harness.errors import RefusedError
from harness.evaluation.checkpoint_copy import copy_checkpoint
from harness.evaluation.problems import Unscorable
from harness.evaluation.scores import counted_runs
from harness.gates.alarms import undiagnosed_runs
from harness.ledger.facts import (
    Checkpoint,
    CheckpointRecorded,
    RunEnded,
    RunStarted,
)
from harness.ledger.project import Project
from harness.plans.approved import plan_seeds
from harness.process import identity
from harness.runs.checkpoint_watch import size_of
from harness.runs.closing import close_abandoned, write_run_json
from harness.runs.environment import fresh_folder
from harness.runs.lock import supervising
from harness.runs.run_tail import Event
from harness.runs.supervisor import new_token
from harness.runs.train import TrainReport, with_config
from harness.runs.train_job import TrainJob, code_of, prepare
from harness.runs.workspace import taking

Kept = tuple[Run, Checkpoint]


def take(
    project: Project,
    experiment: str,
    sources: Sequence[str],
    *,
    sandbox: Sandbox,
    session: str | None,
    inherited: Mapping[str, str],
    values: Mapping[str, str] | None = None,
    code: str | None = None,
    on_event: Event = lambda event: None,
) -> TrainReport:
    """A completed run for each seed of the experiment, with the final checkpoints that the
    `sources` have of it: one as it is, several in one folder, each under its experiment's id.

    A seed that has just these weights already, with this code, keeps its run. `values` as for
    `train`. `code`: the revision whose predict is used; None: the files as they are now.

    Raises UsageError (no_commit), RefusedError (other_tree, nothing_to_take, data_differs,
    alarm_undiagnosed, checkpoint_changed) and what `prepare` raises.
    """
    with supervising(project.layout, experiment):
        record = project.require_here(experiment)
        recovered = close_abandoned(project, experiment)
        job = prepare(
            project, experiment, None, sandbox=sandbox, session=session, inherited=inherited
        )
        if code is not None:
            commit = commit_of(project.layout.root, code)
            snapshot = code_of(project, job.approved, commit)
            job = replace(job, snapshot=snapshot, commit=commit)
        kept = {source: _kept(job, source) for source in dict.fromkeys(sources)}
        seeds = plan_seeds(job.approved, record)
        for source, by_seed in kept.items():
            if lacking := [seed for seed in seeds if seed not in by_seed]:
                raise _nothing(source, f"no completed run of the seeds {lacking}")
        words = ("harness", "train", experiment, "--from", ",".join(sources))
        job = with_config(job, words, values or {}, on_event)
        write_snapshot(job.snapshot, project.layout.experiment(experiment, "code"))
        runs = []
        for seed in seeds:
            run = _take_seed(job, seed, {source: of[seed] for source, of in kept.items()})
            runs.append(run)
            on_event({"kind": "run", "run": f"{experiment}/{run.id}", "text": run.reason})
    return TrainReport(experiment=experiment, runs=runs, findings=recovered, ok=True)


def _kept(job: TrainJob, source: str) -> dict[int, Kept]:
    """Seed -> its run that counts, and the final checkpoint that it left."""
    project = job.project
    runs = counted_runs(project.ledger.runs(project.ledger.experiment(source).id))
    finals = {point.run: point for point in project.ledger.checkpoints(source) if point.final}
    kept = {
        run.seed: (run, finals[run.id])
        for run in runs
        if run.status is RunStatus.COMPLETED and run.id in finals
    }
    if not kept:
        raise _nothing(source, "no completed run with a final checkpoint")
    if not any((project.layout.root / final.path).exists() for _, final in kept.values()):
        project.require_here(source)
    if unexplained := sorted(set(undiagnosed_runs(project, source)) & {run.id for run in runs}):
        raise RefusedError(
            f"{source} has alarms that no diagnosis explains: {', '.join(unexplained)}.",
            hint=f"Write the diagnosis.md of {source} first.",
            code="alarm_undiagnosed",
        )
    if any(run.data != job.data for run, _ in kept.values()):
        raise RefusedError(
            f"{source} was trained on other data than the plan has now.",
            hint=f"Train {job.experiment} with `harness train {job.experiment}`.",
            code="data_differs",
        )
    return kept


def _nothing(source: str, what: str) -> RefusedError:
    return RefusedError(
        f"{source} has {what}.",
        hint=f"`harness experiment show {source}` lists its runs; train it first.",
        code="nothing_to_take",
    )


def _take_seed(job: TrainJob, seed: int, members: Mapping[str, Kept]) -> Run:
    project, layout = job.project, job.project.layout
    argv = next(iter(members.values()))[0].argv
    trained = [origin for run, _ in members.values() for origin in origins(run)]
    with taking(layout, job.experiment) as folder:
        copies = {
            source: _copy(project, run, point, folder) for source, (run, point) in members.items()
        }
        laid = _lay(copies, folder / "checkpoints")
        content = hash_path(laid)
        if there := _taken(job, seed, argv, trained, content):
            return there
        registered = project.ledger.register_run(
            experiment=job.experiment,
            seed=seed,
            argv=list(argv),
            code=job.snapshot.hash,
            data=job.data,
            environment=job.environment,
            sandbox=_least([job.sandbox.kind, *(run.sandbox for run, _ in members.values())]),
            session=job.session,
            caller=_callers(job, [run for run, _ in members.values()]),
            config=job.config,
            token=new_token()[1],
        )
        fresh_folder(layout.run(job.experiment, registered.id))
        place = layout.run(job.experiment, registered.id, "checkpoints") / laid.name
        place.parent.mkdir()
        shutil.move(laid, place)  # the state directory may lie on another disk
    points = [point for _, point in members.values()]
    handle = {"from": trained} | ({} if job.commit is None else {"commit": job.commit})
    _record(project, registered, handle, (place, content), points)
    return project.ledger.run(job.experiment, registered.id)


def _taken(
    job: TrainJob, seed: int, argv: Sequence[str], trained: Sequence[str], content: str
) -> Run | None:
    """The seed's run, when it counts and is what would be made anew: an interrupted call goes on
    with the seeds that it lacks, and registers no second attempt of the others."""
    ledger = job.project.ledger
    finals = {point.run: point.id for point in ledger.checkpoints(job.experiment) if point.final}
    for run in counted_runs(ledger.runs(job.experiment)):
        same = (run.seed, run.code, run.argv) == (seed, job.snapshot.hash, tuple(argv))
        whole = run.status is RunStatus.COMPLETED and origins(run) == tuple(trained)
        if same and whole and run.data == job.data and finals.get(run.id) == content:
            return run
    return None


def origins(run: Run) -> tuple[str, ...]:
    """The runs that trained its weights: its own name, unless it took them."""
    return run.taken_from or (f"{run.experiment}/{run.id}",)


def _copy(project: Project, run: Run, point: Checkpoint, folder: Path) -> tuple[str, Path]:
    """(name, a verified copy) of the checkpoint."""
    own = folder / run.experiment
    own.mkdir()
    path = project.layout.root / point.path
    try:
        copy = copy_checkpoint(path, own, root=project.layout.root, expected=point.id)
    except Unscorable as error:
        finding = error.finding
        raise RefusedError(finding.message, hint=finding.hint, code=finding.code) from error
    return path.name, copy


def _lay(copies: Mapping[str, tuple[str, Path]], folder: Path) -> Path:
    """Move the copies below `folder`; the checkpoint that they make."""
    folder.mkdir()
    if len(copies) == 1:
        ((name, copy),) = copies.values()
        return copy.rename(folder / name)
    members = folder / "members"
    for source, (name, copy) in copies.items():
        (members / source).mkdir(parents=True)
        copy.rename(members / source / name)
    return members


def _least(sandboxes: Sequence[str]) -> str:
    """What isolates least."""
    return min(map(SandboxKind, sandboxes), key=lambda kind: kind.strength).value


def _callers(job: TrainJob, runs: Sequence[Run]) -> str:
    own = job.project.caller_for(job.experiment)
    return str(functools.reduce(weakest, (Caller.read(run.caller) for run in runs), own))


def _record(
    project: Project,
    run: Run,
    handle: dict[str, Any],
    made: tuple[Path, str],
    points: Sequence[Checkpoint],
) -> None:
    """`handle`: {from, commit}, the runs that trained it, and whose code predict is, if a commit's;
    `made`: the checkpoint's place, and its hash, taken where no agent could change it."""
    layout, (place, content) = project.layout, made
    checkpoint = CheckpointRecorded(
        experiment=run.experiment,
        run=run.id,
        checkpoint=content,
        path=layout.relative(place),
        bytes=size_of(place),
        epoch=points[0].epoch if len(points) == 1 else None,
        final=True,
    )
    ended = RunEnded(
        experiment=run.experiment,
        run=run.id,
        status=RunStatus.COMPLETED.value,
        exit_code=None,
        reason=f"takes the checkpoint of {', '.join(handle['from'])}; nothing was trained",
        seconds=0.0,
        rows=0,
    )
    started = RunStarted(
        experiment=run.experiment,
        run=run.id,
        job={"launcher": TAKEN, "handle": handle},
        supervisor=identity(),
    )
    # Together: killed before, the run is closed as lost; nothing of it was started.
    with project.ledger.transaction() as writer:
        for fact in (started, checkpoint, ended):
            writer.append(fact)
    write_run_json(layout, project.ledger.run(run.experiment, run.id), ended)
