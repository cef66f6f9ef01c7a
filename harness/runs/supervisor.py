"""`train`: one supervised run a seed, registered before it is launched and closed by what
happened."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.artifacts.code_snapshot import write_snapshot
from harness.domain import variables
from harness.domain.findings import CODE_CHANGED, Finding
from harness.domain.records import Run
from harness.domain.sandbox import Sandbox, machine_share
from harness.domain.statuses import RunStatus
from harness.errors import HarnessError
from harness.guard.control_files import watching
from harness.ledger.project import Project
from harness.plans.approved import seeds_for
from harness.runs.alarms import RunAlarms
from harness.runs.collect import Ending, close_run, read_all, rows_of, write_run_json
from harness.runs.endings import code_changed, findings_of, judge, leftovers
from harness.runs.environment import child_environment, prepare_private, run_variables
from harness.runs.folder import fresh_folder
from harness.runs.following import follow
from harness.runs.interrupts import Interrupts
from harness.runs.job import Job, prepare
from harness.runs.launch import Launched, Limits, launch, watch
from harness.runs.lock import supervising
from harness.runs.private import make_private, remove_private
from harness.runs.reasons import last_lines
from harness.runs.recover import close_abandoned
from harness.runs.registering import register
from harness.runs.resume import resumed_run, resumptions
from harness.runs.rows import RunRows
from harness.runs.run_tail import RunTail

Event = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class TrainReport:
    experiment: str
    runs: list[Run]
    """The run of each seed of the plan, as far as there is one."""
    findings: list[Finding]
    ok: bool
    """Every seed of the plan has a completed run of the current code, and no run logger was
    bypassed."""


def train(
    project: Project,
    experiment: str,
    argv: Sequence[str] | None,
    *,
    sandbox: Sandbox,
    session: str | None = None,
    resume: bool = False,
    on_event: Event = lambda event: None,
    inherited: Mapping[str, str] | None = None,
    silent_s: float = 60.0,
    grace_s: float = 10.0,
) -> TrainReport:
    """Run the command, by default the plan's training.entry, once for each of the plan's seeds that
    has no completed run of this code and command yet.

    The first run that does not complete ends the call: the next seeds would meet the same code.
    Runs that a dead supervisor left are closed first. SIGTERM is taken like Ctrl-C: what was
    started is ended, the run is closed as cancelled, KeyboardInterrupt goes on; a second signal
    does not disturb that.

    Args:
        resume: a seed's newest run that stopped goes on, in its own folder, as its next attempt.
        on_event: told of progress; each event has a `kind` and a `text`.
        inherited: the environment whose allowed part is passed on, by default this process's.
        silent_s: seconds that a run may go on without a metrics row of its own.
        grace_s: seconds between TERM and KILL.

    Raises RefusedError (already_training, experiment_closed, ...), NotFoundError, RunError.
    """
    interrupts = Interrupts()
    with supervising(project.layout, experiment), interrupts.taken():
        project.ledger.experiment(experiment)
        findings = close_abandoned(project, experiment)
        job = prepare(
            project,
            experiment,
            argv,
            sandbox=sandbox,
            session=session,
            inherited=os.environ if inherited is None else inherited,
            on_event=on_event,
        )
        wanted = seeds_for(job.approved.sha256, job.plan.oracle.seeds)
        done = job.completed()
        stopped = resumptions(job, [seed for seed in wanted if seed not in done]) if resume else {}
        write_snapshot(job.snapshot, project.layout.experiment(experiment, "code"))
        for seed in (seed for seed in wanted if seed not in done):
            left = job.seconds_left()
            if left <= 0:
                findings.append(_budget_spent(job))
                break
            limits = Limits(
                run=job.plan.budget.run_minutes * 60, total=left, silent=silent_s, grace=grace_s
            )
            with interrupts.held():
                run = _one_run(job, seed, limits, interrupts, stopped.get(seed))
            findings, done[seed] = [*findings, *findings_of(run, job.command[0])], run
            if run.status is not RunStatus.COMPLETED or any(
                item.code == CODE_CHANGED for item in run.findings
            ):
                break
        runs = [done[seed] for seed in wanted if seed in done]
        good = len(runs) == len(wanted) and all(run.status is RunStatus.COMPLETED for run in runs)
        return TrainReport(experiment=experiment, runs=runs, findings=findings, ok=good)


def _budget_spent(job: Job) -> Finding:
    return Finding(
        "budget_spent",
        f"The plan's total_minutes ({job.plan.budget.total_minutes:g}) are spent: no further run is"
        " started.",
        "A person may raise budget.total_minutes and approve the plan again.",
    )


def _register(job: Job, seed: int) -> tuple[Run, str]:
    return register(
        job.project,
        experiment=job.experiment,
        seed=seed,
        argv=job.argv,
        code=job.snapshot.hash,
        data=job.data,
        environment=job.environment,
        sandbox=job.sandbox.kind.value,
        session=job.session,
    )


def _one_run(
    job: Job,
    seed: int,
    limits: Limits,
    interrupts: Interrupts,
    stopped: tuple[Run, str] | None = None,
) -> Run:
    """Register, or take up the run that `stopped`; launch, watch, end, close."""
    project = job.project
    if stopped is None:
        run, token = _register(job, seed)
    else:
        limits = replace(limits, run=limits.run - (stopped[0].seconds or 0.0))
        run, token = resumed_run(job, stopped[0]), stopped[1]
    name, how = (
        f"{run.experiment}/{run.id}",
        "started" if stopped is None else f"goes on, attempt {run.attempt}",
    )
    job.on_event({"kind": "run", "run": name, "seed": seed, "text": f"{name}  seed {seed}: {how}"})
    try:
        with watching(project, job.sandbox.kind, lambda: job.experiment):
            folder = project.layout.run(run.experiment, run.id)
            began = fresh_folder(folder) if stopped is None else None
            run, ending, rows = _supervise(job, run, token, folder, limits, interrupts)
        ending = replace(
            ending, findings=[*ending.findings, *code_changed(run, job.code_changes())]
        )
        run = close_run(project, run, rows, ending, began=began)
    finally:
        remove_private(run.token)
    job.on_event(
        {
            "kind": "run",
            "run": name,
            "status": run.status.value,
            "text": f"{name}  {run.status}: {run.reason}",
        }
    )
    if run.status is RunStatus.CANCELLED:
        raise KeyboardInterrupt
    return run


def _supervise(
    job: Job, run: Run, token: str, folder: Path, limits: Limits, interrupts: Interrupts
) -> tuple[Run, Ending, RunRows]:
    layout, clock = job.project.layout, job.project.clock
    write_run_json(layout, run)
    rows, alarms = rows_of(layout, run), RunAlarms(job.project, run)
    run_tail = RunTail(rows, clock)
    alarms.take(run_tail.before())
    try:
        launched = _launch(job, run, token, folder)
    except OSError as error:
        reason = f"never started: {error.strerror}: {error.filename}"
        return run, Ending(status=RunStatus.FAILED, reason=reason), rows
    except HarnessError as error:
        return run, Ending(status=RunStatus.FAILED, reason=f"never started: {error}"), rows
    followed = follow(
        job.project,
        run,
        launched,
        lambda: watch(launched, run_tail, alarms, limits, clock, job.on_event),
        interrupts,
        grace=limits.grace,
    )
    run = followed.run
    fatal = alarms.fatal()
    alarms.take(run_tail.look())
    rows = read_all(layout, run)
    stderr = last_lines(layout.run(run.experiment, run.id, "stderr"))
    ending = judge(run, followed.how, launched.process.returncode, rows, limits, stderr, fatal)
    found = [*ending.findings, *leftovers(run, followed.left), *run_tail.findings()]
    return run, replace(ending, seconds=followed.seconds, findings=found), rows


def _launch(job: Job, run: Run, token: str, folder: Path) -> Launched:
    layout, private = job.project.layout, make_private(run.token)
    given = run_variables(
        project=layout.root,
        experiment=run.experiment,
        run=run.id,
        run_dir=folder,
        token=token,
        seed=run.seed,
    )
    given[variables.ATTEMPT] = str(run.attempt)
    given[variables.CHECKPOINT_EVERY] = str(job.plan.training.checkpoint_every)
    given[variables.METRIC], given[variables.DIRECTION] = (
        job.plan.oracle.metric,
        job.plan.oracle.direction.value,
    )
    given |= prepare_private(private, python=job.python)
    return launch(
        job.sandbox.command(
            job.command, job.confinement(folder, private), memory_bytes=machine_share()
        ),
        cwd=layout.root,
        environment=child_environment(job.inherited, private, given),
        stdout=layout.run(run.experiment, run.id, "stdout"),
        stderr=layout.run(run.experiment, run.id, "stderr"),
        further=layout.run(run.experiment, run.id, "stdout").exists(),
    )
