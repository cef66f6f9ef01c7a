"""The run of one seed of the plan, as the supervisor sees it."""

import json
import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from harness.artifacts.metrics_file import Row
from harness.audit.open_sessions import see_sessions
from harness.detectors.alarm import Alarm
from harness.domain import variables
from harness.domain.records import Run
from harness.domain.sandbox import Confinement, machine_share
from harness.domain.statuses import RunStatus, SandboxKind
from harness.errors import RefusedError
from harness.guard.control_files import watching
from harness.plans.approved import training_tables
from harness.plans.held_out import notes_of
from harness.runs.absent import absent_findings
from harness.runs.closing import close_run
from harness.runs.endings import Ending, at_limit, by_itself, bypassed, last_lines
from harness.runs.environment import fresh_folder
from harness.runs.experiment_config import not_read, values_of
from harness.runs.many_processes import ReplicaNews
from harness.runs.predict_trial import PredictTrial
from harness.runs.run_tail import RunRows
from harness.runs.supervisor import EndedRun, RegisteredRun, SupervisedRun, new_token
from harness.runs.train_job import TrainJob
from harness.runs.workspace import Workspace


class BudgetSpentError(RefusedError):
    code = "budget_spent"


def _time_left(job: TrainJob) -> float:
    """Seconds. Raises BudgetSpentError."""
    left = job.seconds_left()
    if left > 0:
        return left
    minutes = f"The plan's total_minutes ({job.plan.budget.total_minutes:g}) are spent"
    hint = "A person may raise budget.total_minutes and approve the plan again."
    if names := ", ".join(f"{run.experiment}/{run.id}" for run in job.open_runs()):
        minutes += f", or kept for what runs now ({names})"
        hint = f"Train again when these have ended. {hint}"
    raise BudgetSpentError(f"{minutes}: no further run is started.", hint=hint)


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
                notes = notes_of(self.project.layout.originals)
                absent = absent_findings(
                    run,
                    stderr,
                    self.made,
                    self.job.snapshot,
                    table=table,
                    moved={note["path"] for note in notes if "split" in note},
                )
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
