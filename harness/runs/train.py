"""`harness train`: one supervised run for each seed of the plan."""

import contextlib
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.artifacts.code_snapshot import write_snapshot
from harness.domain.findings import Finding
from harness.domain.launch_options import LOCAL
from harness.domain.records import Run
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import RunStatus
from harness.errors import RefusedError
from harness.ledger.project import Project
from harness.plans.approved import plan_seeds
from harness.process import judge_environment
from harness.runs.before_start import Startable, tried_before
from harness.runs.closing import close_abandoned
from harness.runs.endings import (
    Interrupts,
    findings_of,
)
from harness.runs.experiment_config import keep_config, unnamed, unread
from harness.runs.fan_out import FanOut, Pace
from harness.runs.launchers.launcher import Engine
from harness.runs.launchers.on_node import began
from harness.runs.leases import leased_cards
from harness.runs.lock import holding_seed, supervising
from harness.runs.many_processes import replicas_of
from harness.runs.placement import Order
from harness.runs.predict_trial import PredictTrial
from harness.runs.resume import resumptions
from harness.runs.run_tail import Event
from harness.runs.seed_run import BudgetSpentError, RunLimits, SeedRun
from harness.runs.supervisor import (
    supervise,
)
from harness.runs.train_job import TrainJob, not_copied, prepare

_CLOSING_S = 90.0
SILENT_S = 600.0
"""Large models and data sets are loaded, and kernels compiled, before a first row is written."""


@dataclass(frozen=True, kw_only=True)
class TrainReport:
    experiment: str
    runs: list[Run]
    """The run of each seed of the plan, as far as there is one."""
    findings: list[Finding]
    ok: bool
    """Every seed of the plan has a completed run of the current code."""


def train(
    project: Project,
    experiment: str,
    argv: Sequence[str] | None,
    *,
    sandbox: Sandbox,
    session: str | None = None,
    resume: bool = False,
    registered: bool = False,
    code: str | None = None,
    values: Mapping[str, str] | None = None,
    replicas: int | None = None,
    ranks: int | None = None,
    on_event: Event = lambda event: None,
    inherited: Mapping[str, str] | None = None,
    silent_s: float = SILENT_S,
    grace_s: float = 10.0,
    engine: Engine | None = None,
) -> TrainReport:
    """Run the command, by default the plan's training.entry, for each of its seeds that has no
    completed run of this code and command yet; the first that does not complete ends the call.
    Runs that a dead supervisor left are closed first. A signal, or a closed terminal, closes what
    runs as cancelled; then KeyboardInterrupt is raised.

    Args:
        resume: each seed's newest stopped run goes on, in its own folder, as its next attempt.
        registered: with the code of its newest run; code: with a snapshot's, by its hash.
        values: for config.yaml, where there is none yet.
        replicas, ranks: so many of the command, as DiLoCo's, or as torchrun starts them.
        on_event: gets progress: a `kind` and a `text`.
        inherited: the environment whose allowed part is passed on, by default this process's.
        silent_s: that a run may go on without a row of its own; grace_s: between TERM and KILL.
        engine: where the supervisors of the seeds run, all at once; None: here, one by one.

    Raises RefusedError, e.g. already_training or command_not_found, NotFoundError, RunError.
    """
    with supervising(project.layout, experiment), (interrupts := Interrupts()).taken():
        project.require_here(experiment)
        recovered = close_abandoned(project, experiment)
        job = prepare(
            project,
            experiment,
            argv,
            replicas=replicas_of(project, experiment, replicas),
            ranks=ranks,
            sandbox=sandbox,
            session=session,
            inherited=os.environ if inherited is None else inherited,
            registered=registered,
            code=code,
        )
        job = _ready(job, engine, values or {}, on_event)
        notes = not_copied(job.snapshot, on_event)
        notes += tried_before(job, on_event) if code is None else []
        if engine is None:
            run = _seed_run(job, on_event, grace_s)
            report = _train_seeds(job, run, interrupts, resume=resume, silent_s=silent_s)
        else:
            report = _fanned_out(job, engine, on_event, resume, Pace(silent_s, grace_s))
        return replace(report, findings=[*recovered, *notes, *report.findings])


def _ready(
    job: TrainJob, engine: Engine | None, values: Mapping[str, str], on_event: Event
) -> TrainJob:
    """With its configuration; what cannot start here, where it would, is refused."""
    if engine is None or engine.name == LOCAL:
        _require_startable(job)
    job = with_config(job, job.argv, values, on_event)
    told = unnamed(values, job.argv, job.snapshot, job.project.layout.objects)
    if told is not None:
        on_event({"kind": "value_unnamed", "text": told})
    return _as_before(replace(job, asked=values), on_event)


def _fanned_out(
    job: TrainJob, engine: Engine, on_event: Event, resume: bool, pace: Pace
) -> TrainReport:
    fan = FanOut(
        job=job,
        engine=engine,
        environment=judge_environment(job.inherited),
        on_event=on_event,
        resume=resume,
        pace=pace,
    )
    wanted, done = plan_seeds(job.approved, job.record), job.completed()
    missing = [seed for seed in wanted if seed not in done]
    if fan.resume:
        resumptions(job, missing)
    write_snapshot(job.snapshot, job.project.layout.experiment(job.experiment, "code"))
    findings = fan.run(missing)
    newest = {run.seed: run for run in job.project.ledger.runs(job.experiment)}
    return _report(job, wanted, newest | job.completed(), findings)


def train_order(
    project: Project,
    order: Order,
    folder: Path,
    *,
    sandbox: Sandbox,
    on_event: Event,
    inherited: Mapping[str, str],
    is_lost: Callable[[], bool] = lambda: False,
) -> TrainReport:
    """What `train` asked an engine to do: the run of one seed, supervised here. One that was begun
    before goes on, if it can. `is_lost`: whether the engine's process died under it. Raises as
    `train`."""
    interrupts = Interrupts()
    experiment, seed = order.experiment, order.seed
    again = (began(folder) or {}).get("starts", 1) > 1
    # The supervisor before this one may still be closing its run.
    patience = _CLOSING_S if again else 1.0
    held = holding_seed(project.layout, experiment, seed, seconds=patience)
    with held, interrupts.taken():
        recovered = close_abandoned(project, experiment, seed=seed)
        job = prepare(
            project,
            experiment,
            order.argv,
            sandbox=sandbox,
            session=order.session,
            inherited=inherited,
            code=order.code,
        )
        _require_startable(job)
        job = replace(job, config=order.config, asked=order.asked)
        with leased_cards(order.gpus, inherited, on_event) as cards:
            run = _seed_run(replace(job, inherited=cards.variables), on_event, order.grace_s)
            report = _train_seeds(
                job,
                functools.partial(
                    run,
                    placed=order.placed(folder) | cards.placed,
                    at_signal=functools.partial(order.at_signal, folder, is_lost),
                ),
                interrupts,
                resume=(order.resume or again) and _goes_on(job, seed),
                silent_s=order.silent_s,
                only=seed,
                trying=order.first,
            )
        return replace(report, findings=[*recovered, *report.findings])


def _goes_on(job: TrainJob, seed: int) -> bool:
    try:
        return bool(resumptions(job, [seed]))
    except RefusedError:
        return False


def _seed_run(job: TrainJob, on_event: Event, grace: float) -> Callable[..., SeedRun]:
    return functools.partial(
        SeedRun,
        project=job.project,
        sandbox=job.sandbox,
        python=job.python,
        inherited=job.inherited,
        on_event=on_event,
        grace=grace,
        job=job,
    )


def _require_startable(job: TrainJob) -> None:
    Startable(
        project=job.project,
        argv=job.argv,
        program=job.command[0],
        inherited=job.inherited,
        code=lambda: job.snapshot,
        again=f"harness train {job.experiment}",
    ).require()


def with_config(
    job: TrainJob, words: Sequence[str], values: Mapping[str, str], on_event: Event
) -> TrainJob:
    """The job with its experiment's config.yaml, which is written where there is none."""
    digest, written = keep_config(job.project, job.experiment, words, values)
    if written:
        path = job.project.layout.experiment(job.experiment, "config")
        text = f"{job.project.layout.relative(path)}: written from the command, for there was none"
        on_event({"kind": "config_written", "text": text})
    return replace(job, config=digest)


def _as_before(job: TrainJob, on_event: Event) -> TrainJob:
    """Seeds of one experiment have one configuration: that of those which are done."""
    first = next((run for run in job.completed().values() if run.config), None)
    if first is None or first.config == job.config:
        return job
    text = (
        f"config.yaml changed since {first.experiment}/{first.id}: the other seeds get what it said"
        " then; another configuration is another experiment"
    )
    on_event({"kind": "config_kept", "text": text})
    return replace(job, config=first.config)


def _train_seeds(
    job: TrainJob,
    seed_run: Callable[..., SeedRun],
    interrupts: Interrupts,
    *,
    resume: bool,
    silent_s: float,
    only: int | None = None,
    trying: bool = True,
) -> TrainReport:
    """One after another; `only` one of them, and `trying` predict beside."""
    layout = job.project.layout
    wanted, done = plan_seeds(job.approved, job.record), job.completed()
    wanted = [seed for seed in wanted if only in (None, seed)]
    missing = [seed for seed in wanted if seed not in done]
    stopped = resumptions(job, missing) if resume else {}
    write_snapshot(job.snapshot, job.project.layout.experiment(job.experiment, "code"))
    findings: list[Finding] = []
    budget = job.plan.budget
    limits = RunLimits(
        run=budget.run_minutes * 60,
        total=budget.total_minutes * 60,
        silent=silent_s,
    )
    with contextlib.closing(PredictTrial(job, job.sandbox, asked=trying)) as trial:
        for seed in missing:
            before = stopped.get(seed)
            task = seed_run(seed=seed, limits=limits, stopped=before, trial=trial)
            try:
                report = supervise(task, interrupts)
            except BudgetSpentError as spent:
                findings.append(Finding(spent.code, spent.message, spent.hint))
                break
            run = done[seed] = report.run
            log = layout.run(run.experiment, run.id, "stderr")
            findings += findings_of(run, job.ran_by, layout.relative(log))
            if report.unread and seed == missing[0]:
                told = unread(job.asked, job.argv, report.unread)
                findings.append(told)
                task.on_event({"kind": told.code, "text": f"{told.message} {told.hint}"})
            if run.status is not RunStatus.COMPLETED:
                break
    return _report(job, wanted, done, findings)


def _report(
    job: TrainJob,
    wanted: Sequence[int],
    done: Mapping[int, Run],
    findings: list[Finding],
) -> TrainReport:
    runs = [done[seed] for seed in wanted if seed in done]
    ok = len(runs) == len(wanted) and all(run.status is RunStatus.COMPLETED for run in runs)
    return TrainReport(experiment=job.experiment, runs=runs, findings=findings, ok=ok)
