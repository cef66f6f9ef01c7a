"""One run of a training program: registered, launched sandboxed, watched, ended with all it
started, judged, closed."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from harness.domain.records import Run
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import RunStatus
from harness.errors import HarnessError
from harness.ledger.facts import RunStarted, local_job
from harness.ledger.project import Project
from harness.posttrain.dry_run import dry_result
from harness.posttrain.launching import Job, launch_trainer, require_packages, words_of
from harness.posttrain.resume import Stopped, set_earlier_aside, stopped_run
from harness.posttrain.tokens import Tokens
from harness.posttrain.training_judgement import (
    ProgramReport,
    hashes_now,
    judge_result,
    make_folder,
    output_folder,
    program_spec,
    require_not_completed,
    write_spec,
)
from harness.posttrain.untrusted_json import read_json_lines
from harness.posttrain.validation import Observed, ReportedResult, read_result
from harness.posttrain.vocabulary import Backend
from harness.posttrain.watching import TrainerWatch
from harness.process import identity
from harness.runs.alarms import RunAlarms
from harness.runs.collect import Ending, close_run, read_all, write_run_json
from harness.runs.collect import rows_of as run_rows
from harness.runs.endings import leftovers
from harness.runs.environment import ask_python, describe
from harness.runs.following import follow
from harness.runs.interrupts import Interrupts
from harness.runs.lock import supervising
from harness.runs.private import remove_private
from harness.runs.recover import close_abandoned
from harness.runs.registering import register
from harness.runs.run_tail import RunTail
from harness.settings import require_interpreter

Event = Callable[[dict[str, Any]], None]


def run_program(
    project: Project,
    experiment: str,
    *,
    sandbox: Sandbox,
    inherited: Mapping[str, str] | None = None,
    grace_s: float = 10.0,
    resume: bool = False,
    on_event: Event = lambda event: None,
) -> ProgramReport:
    """Start the trainer once and judge what it brings. Runs that a dead supervisor left behind are
    closed first.

    With `resume` the newest run goes on as its next attempt, in its own folder, where the trainer
    finds its checkpoints; else a new run is registered.

    Raises RefusedError (no_training_program, already_completed, already_training, and what
    `stopped_run` refuses), MissingExtraError, RunError; what the trainer does wrong is a status and
    problems, never an error.
    """
    interrupts = Interrupts()
    with supervising(project.layout, experiment), interrupts.taken():
        spec = program_spec(project, experiment)
        close_abandoned(project, experiment)
        require_not_completed(project, experiment)
        stopped = stopped_run(project, spec, experiment, sandbox) if resume else None
        interpreter = require_interpreter(project.settings)
        job = Job(
            project=project,
            experiment=experiment,
            spec=spec,
            command=words_of(spec, interpreter),
            python=ask_python(interpreter, sandbox),
            sandbox=sandbox,
            inherited=os.environ if inherited is None else inherited,
            grace=grace_s,
            on_event=on_event,
        )
        require_packages(job)
        with interrupts.held():
            return _one_run(job, interrupts, stopped)


def _one_run(job: Job, interrupts: Interrupts, stopped: Stopped | None) -> ProgramReport:
    run, token, began = _register(job) if stopped is None else _take_up(job, stopped)
    name, how = (
        f"{run.experiment}/{run.id}",
        "started" if stopped is None else f"goes on, attempt {run.attempt}",
    )
    job.on_event({"kind": "run", "run": name, "text": f"{name}  {job.spec.backend}: {how}"})
    try:
        dry = job.spec.backend is Backend.DRY_RUN
        report = _dry(job, run) if dry else _supervise(job, run, token, began, interrupts)
    finally:
        remove_private(run.token)
    job.on_event(
        {"kind": "run", "run": name, "text": f"{name}  {report.run.status}: {report.run.reason}"}
    )
    if report.run.status is RunStatus.CANCELLED:
        raise KeyboardInterrupt
    return report


def _register(job: Job) -> tuple[Run, str, float | None]:
    """The run, its link token and when it began."""
    run, token = register(
        job.project,
        experiment=job.experiment,
        seed=job.spec.seed,
        argv=list(job.spec.command or [job.spec.backend.value]),
        code=job.spec.code_hash,
        data={"train": job.spec.dataset["sha256"]},
        environment=describe(job.python, job.inherited),
        sandbox=job.sandbox.kind.value,
        session=None,
    )
    return run, token, make_folder(job.project, run)


def _take_up(job: Job, stopped: Stopped) -> tuple[Run, str, float | None]:
    """As `_register`; its folder is older than this attempt, and its trainer may have changed every
    time in it."""
    before = stopped.run
    run = job.project.ledger.resume_run(
        experiment=before.experiment,
        run=before.id,
        environment=describe(job.python, job.inherited),
        session=None,
    )
    set_earlier_aside(job.project, run, before.attempt)
    return run, stopped.token, None


def _dry(job: Job, run: Run) -> ProgramReport:
    """Through the same validation as every other result."""
    project, spec = job.project, job.spec
    _, digest = write_spec(project, run, spec)
    before = hashes_now(project, spec)
    project.ledger.append(
        RunStarted(
            experiment=run.experiment, run=run.id, supervisor=identity(), job=local_job(identity())
        )
    )
    run = project.ledger.run(run.experiment, run.id)
    observed: dict[str, Any] = {"base_model_sha256": before["base_model_sha256"]}
    try:
        observed["dataset_sha256"], rows = read_json_lines(
            project.layout.root / spec.dataset["path"]
        )
        observed["dataset_rows"] = len(rows)
    except HarnessError:
        observed |= {"dataset_sha256": before["dataset_sha256"], "dataset_rows": 0}
    result = dry_result(
        spec, run=run.id, experiment=run.experiment, spec_sha256=digest, observed=observed
    )
    seen = Observed(
        experiment=run.experiment,
        run=run.id,
        spec_sha256=digest,
        exit_code=0,
        output=output_folder(project, run),
        minutes=0.0,
        tokens=None,
        rows=0,
        before=before,
        after=before,
    )
    return judge_result(
        project, run, spec, ReportedResult(result=result, source="dry-run"), seen, seconds=0.0
    )


def _supervise(
    job: Job, run: Run, token: str, began: float | None, interrupts: Interrupts
) -> ProgramReport:
    project, spec = job.project, job.spec
    path, digest = write_spec(project, run, spec)
    write_run_json(project.layout, run)
    before, earlier = hashes_now(project, spec), run.seconds or 0.0
    rows, alarms, tokens = run_rows(project.layout, run), RunAlarms(project, run), Tokens()
    run_tail = RunTail(rows, project.clock)
    old = run_tail.before()
    alarms.take(old)
    tokens.take(old)
    try:
        launched = launch_trainer(job, run, token, path, spent_tokens=tokens.spent)
    except (OSError, HarnessError) as error:
        ending = Ending(status=RunStatus.FAILED, reason=f"never started: {error}")
        return ProgramReport(run=close_run(project, run, rows, ending), model=None, problems=())
    watch = TrainerWatch(
        spec=spec,
        clock=project.clock,
        run_tail=run_tail,
        alarms=alarms,
        tokens=tokens,
        earlier=earlier,
    )
    followed = follow(
        project, run, launched, lambda: watch.until_it_ends(launched), interrupts, grace=job.grace
    )
    watch.look()
    run, findings = followed.run, [*leftovers(run, followed.left), *run_tail.findings()]
    cut = watch.cut(run, followed.how, findings, followed.seconds, launched.process.returncode)
    if cut is not None:
        closed = close_run(project, run, read_all(project.layout, run), cut)
        return ProgramReport(run=closed, model=None, problems=())
    seen = Observed(
        experiment=run.experiment,
        run=run.id,
        spec_sha256=digest,
        exit_code=launched.process.returncode,
        output=output_folder(project, run),
        minutes=(earlier + followed.seconds) / 60,
        tokens=tokens.seen,
        spent=tokens.spent,
        rows=rows.count,
        before=before,
        after=hashes_now(project, spec),
        began=began,
    )
    read = read_result(
        project.layout.run(run.experiment, run.id, "stdout"), seen.output / "result.json"
    )
    return judge_result(project, run, spec, read, seen, seconds=followed.seconds, findings=findings)
