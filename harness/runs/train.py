"""`harness train`: one supervised run for each seed of the plan."""

import contextlib
import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from harness.artifacts.code_snapshot import write_snapshot
from harness.artifacts.metrics_file import Row
from harness.audit.open_sessions import see_sessions
from harness.detectors.alarm import Alarm
from harness.domain import variables
from harness.domain.findings import Finding
from harness.domain.records import Run
from harness.domain.sandbox import Confinement, Sandbox, machine_share
from harness.domain.statuses import RunStatus, SandboxKind
from harness.errors import RefusedError
from harness.guard.control_files import watching
from harness.ledger.project import Project
from harness.plans.approved import plan_seeds, training_tables
from harness.runs.absent import absent_findings
from harness.runs.collect import close_run
from harness.runs.endings import (
    Ending,
    at_limit,
    by_itself,
    bypassed,
    findings_of,
    last_lines,
)
from harness.runs.environment import fresh_folder
from harness.runs.experiment_config import keep_config, not_read, unread, values_of
from harness.runs.interrupts import Interrupts
from harness.runs.lock import supervising
from harness.runs.predict_trial import PredictTrial
from harness.runs.recover import close_abandoned
from harness.runs.replicated import ReplicaNews, replicas_of
from harness.runs.resume import resumptions
from harness.runs.run_events import Event
from harness.runs.run_tail import RunRows
from harness.runs.startable import Startable
from harness.runs.supervisor import (
    EndedRun,
    RegisteredRun,
    SupervisedRun,
    new_token,
    supervise,
)
from harness.runs.train_job import TrainJob, not_copied, prepare
from harness.runs.tried import tried_before
from harness.runs.workspace import Workspace


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
    on_event: Event = lambda event: None,
    inherited: Mapping[str, str] | None = None,
    silent_s: float = 60.0,
    grace_s: float = 10.0,
) -> TrainReport:
    """Run the command, by default the plan's training.entry, once for each of its seeds that
    has no completed run of this code and command yet.

    The first run that does not complete ends the call: the next seeds would meet the same code.
    Runs that a dead supervisor left are closed first. After SIGTERM or Ctrl-C, or when its
    terminal is closed, the run is ended and closed as cancelled, and KeyboardInterrupt is raised.

    Args:
        resume: each seed's newest stopped run goes on, in its own folder, as its next attempt.
        registered: with the code of its newest run; code: with a snapshot's, by its hash.
        values: for config.yaml, where there is none yet.
        replicas: so many DiLoCo replicas; by default what `distributed` of config.yaml says.
        on_event: gets progress; each event has a `kind` and a `text`.
        inherited: the environment whose allowed part is passed on, by default this process's.
        silent_s: seconds that a run may go on without a metrics row of its own.
        grace_s: seconds between TERM and KILL.

    Raises RefusedError (other_tree, already_training, experiment_closed, judge_changed,
    command_not_found and others), NotFoundError, RunError.
    """
    interrupts = Interrupts()
    with supervising(project.layout, experiment), interrupts.taken():
        project.require_here(experiment)
        recovered = close_abandoned(project, experiment)
        job = prepare(
            project,
            experiment,
            argv,
            replicas=replicas_of(project, experiment, replicas),
            sandbox=sandbox,
            session=session,
            inherited=os.environ if inherited is None else inherited,
            registered=registered,
            code=code,
        )
        _require_startable(job)
        job = with_config(job, job.argv, values or {}, on_event)
        job = _as_before(replace(job, asked=values or {}), on_event)
        notes = not_copied(job.snapshot, on_event)
        notes += tried_before(job, on_event) if code is None else []
        run = _seed_run(job, on_event, grace_s)
        report = _train_seeds(job, run, interrupts, resume=resume, silent_s=silent_s)
        return replace(report, findings=[*recovered, *notes, *report.findings])


def _seed_run(job: TrainJob, on_event: Event, grace: float) -> Callable[..., "SeedRun"]:
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
    seed_run: Callable[..., "SeedRun"],
    interrupts: Interrupts,
    *,
    resume: bool,
    silent_s: float,
) -> TrainReport:
    record = job.project.ledger.experiment(job.experiment)
    wanted, done = plan_seeds(job.approved, record), job.completed()
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
    with contextlib.closing(PredictTrial(job, job.sandbox)) as trial:
        for seed in missing:
            before = stopped.get(seed)
            task = seed_run(seed=seed, limits=limits, stopped=before, trial=trial)
            try:
                report = supervise(task, interrupts)
            except _BudgetSpentError as spent:
                findings.append(Finding(spent.code, spent.message, spent.hint))
                break
            run = done[seed] = report.run
            findings += findings_of(run, job.ran_by)
            if report.unread and seed == missing[0]:
                findings.append(unread(job.asked, job.argv, report.unread))
            if run.status is not RunStatus.COMPLETED:
                break
    runs = [done[seed] for seed in wanted if seed in done]
    ok = len(runs) == len(wanted) and all(run.status is RunStatus.COMPLETED for run in runs)
    return TrainReport(experiment=job.experiment, runs=runs, findings=findings, ok=ok)


class _BudgetSpentError(RefusedError):
    code = "budget_spent"


def _time_left(job: TrainJob) -> float:
    """Seconds. Raises _BudgetSpentError."""
    left = job.seconds_left()
    if left > 0:
        return left
    minutes = f"The plan's total_minutes ({job.plan.budget.total_minutes:g}) are spent"
    hint = "A person may raise budget.total_minutes and approve the plan again."
    if names := ", ".join(f"{run.experiment}/{run.id}" for run in job.open_runs()):
        minutes += f", or kept for what runs now ({names})"
        hint = f"Train again when these have ended. {hint}"
    raise _BudgetSpentError(f"{minutes}: no further run is started.", hint=hint)


@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """Seconds."""

    run: float
    total: float
    """What is left of the plan's total_minutes."""
    silent: float
    """How long a run may go on without a row of its own."""


@dataclass(frozen=True, kw_only=True)
class SeedReport:
    run: Run
    unread: list[str] = field(default_factory=list)
    """Values of --set that a completed training did not read."""


@dataclass(kw_only=True)
class SeedRun(SupervisedRun[SeedReport]):
    """The run of one seed of the plan."""

    job: TrainJob
    seed: int
    limits: RunLimits
    stopped: tuple[Run, str] | None
    """The run that goes on, and its link token."""
    trial: PredictTrial
    run: Run | None = None
    """Once it is registered."""
    replicas: ReplicaNews | None = None
    made: Workspace | None = None
    """Its workspace, once it has one."""

    def register(self) -> RegisteredRun:
        job, ledger = self.job, self.project.ledger
        # Before each run: the runs before it took hours, and a session may have begun since.
        see_sessions(self.project, os.environ)
        caller = str(self.project.caller_for(job.experiment))
        if self.stopped is not None:
            before, token = self.stopped
            # The limit is one for all attempts of a run.
            left = self.limits.run - (before.seconds or 0.0)
            with ledger.transaction():
                self.limits = replace(self.limits, run=left, total=_time_left(job))
                run = ledger.resume_run(
                    experiment=before.experiment,
                    run=before.id,
                    environment=job.environment,
                    session=job.session,
                    caller=caller,
                )
            return RegisteredRun(run=run, token=token, began=None)
        token, digest = new_token()
        # Asked before each run, under the ledger's write lock: the runs before it, and those of
        # another tree, take from the same budget.
        with ledger.transaction():
            self.limits = replace(self.limits, total=_time_left(job))
            run = ledger.register_run(
                experiment=job.experiment,
                seed=self.seed,
                argv=job.argv,
                code=job.snapshot.hash,
                data=job.data,
                environment=job.environment,
                sandbox=self.sandbox.kind.value,
                session=job.session,
                caller=caller,
                config=job.config,
                token=digest,
            )
        began = fresh_folder(self.project.layout.run(run.experiment, run.id))
        return RegisteredRun(run=run, token=token, began=began)

    def prepare(self, run: Run) -> None:
        self.run = run
        folder = self.project.layout.run(run.experiment, run.id)
        self.replicas = ReplicaNews(folder, f"{run.experiment}/{run.id}")

    def take(self, rows: list[Row]) -> None:
        assert self.run is not None  # it is registered first
        self.trial.take(self.run, rows)

    def news(self, row: int) -> tuple[dict[str, Any], Alarm | None] | None:
        assert self.run is not None
        if self.replicas is not None and (told := self.replicas.take()) is not None:
            return told, None
        return self.trial.news(f"{self.run.experiment}/{self.run.id}", row)

    def shown(self) -> str:
        return f"seed {self.seed}"

    def guarded(self) -> AbstractContextManager[None]:
        # A sandbox shows training no control file, and a person may edit them meanwhile.
        if self.sandbox.kind is not SandboxKind.NONE:
            return nullcontext()
        return watching(self.project, self.sandbox.kind, lambda: self.job.experiment)

    def words(self, run: Run) -> list[str]:
        return self.job.command

    def variables(self, run: Run) -> dict[str, str]:
        plan = self.job.plan
        assert self.made is not None  # the workspace comes first
        names = {"train": variables.TRAIN, "validation": variables.VALIDATION}
        tables = {
            names[split]: str(self.made.seen / path)
            for split, path in training_tables(self.job.approved).items()
        }
        config = values_of(self.project, run.config)
        return tables | {
            variables.CONFIG: json.dumps(config, default=str),
            variables.CHECKPOINT_EVERY: str(plan.training.checkpoint_every),
            variables.METRIC: plan.oracle.metric,
            variables.DIRECTION: plan.oracle.direction.value,
        }

    def workspace(self, run: Run) -> Workspace:
        self.made = self.job.workspace(run)
        return self.made

    def confinement(self, workspace: Workspace) -> Confinement:
        return self.job.confinement(workspace)

    def memory_bytes(self) -> int | None:
        return machine_share()

    def limit(self, elapsed: float, rows: RunRows) -> Ending | None:
        limits = self.limits
        if elapsed > min(limits.run, limits.total):
            is_run = limits.run <= limits.total
            what = "budget.run_minutes" if is_run else "what was left of budget.total_minutes"
            return at_limit(f"ended at {what}, {min(limits.run, limits.total) / 60:.2g} minutes")
        if not rows.seen and elapsed > limits.silent:
            problem = bypassed(rows.run, f"ran for {limits.silent:g} s")
            return at_limit(problem.message, [problem])
        return None

    def close(self, ended: EndedRun) -> SeedReport:
        run = ended.run
        ending = ended.cut
        if ending is None:
            stderr = last_lines(self.project.layout.run(run.experiment, run.id, "stderr"))
            ending = by_itself(run, ended.exit_code or 0, ended.rows, stderr)
            if ending.status is RunStatus.FAILED and self.made is not None:
                table = self.job.plan.data.train
                absent = absent_findings(run, stderr, self.made, self.job.snapshot, table=table)
                ending = replace(ending, findings=[*ending.findings, *absent])
        ending = ended.measured(ending)
        closed = close_run(
            self.project, run, ended.rows, ending, began=ended.began, told=ended.told
        )
        rows, job = ended.rows, self.job
        unread = not_read(
            job.asked,
            job.argv,
            unread=(rows.end or {}).get("unread"),
            logged=rows.logged,
        )
        return SeedReport(run=closed, unread=unread)
