"""One run of a training program: registered, launched caged, watched, ended with all it started, judged, closed."""

import hashlib
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from harness.clock import Clock
from harness.domain import variables
from harness.domain.commands import with_interpreter
from harness.domain.facts import RunStarted
from harness.domain.findings import Finding
from harness.domain.records import Run
from harness.domain.sandbox import Confinement, Sandbox, machine_share
from harness.domain.statuses import CageKind, RunStatus
from harness.errors import HarnessError, MissingExtraError, NotFoundError, RefusedError
from harness.posttrain.dry_run import dry_result
from harness.posttrain.fingerprints import rows_of, trainer_module
from harness.posttrain.judge import (
    ProgramReport,
    hashes_now,
    judge_result,
    make_folder,
    output_folder,
    program_spec,
    write_spec,
)
from harness.posttrain.result import Observed, Read, read_result
from harness.posttrain.spec import Spec
from harness.posttrain.vocabulary import PACKAGES, Backend, Tier
from harness.project.context import Project
from harness.runs.alarms import RunAlarms, stopped
from harness.runs.collect import Ending, close_run, read_all, write_run_json
from harness.runs.collect import rows_of as run_rows
from harness.runs.endings import leftovers
from harness.runs.environment import ask_python, child_environment, describe, prepare_private, run_variables
from harness.runs.interrupts import Interrupts
from harness.runs.launch import Launched, launch
from harness.runs.lock import supervising
from harness.runs.private import make_private, remove_private
from harness.runs.processes import end_process, identity
from harness.runs.recover import close_abandoned
from harness.runs.witness import Witness
from harness.settings import require_interpreter

_PACKAGE = Path(__file__).resolve().parents[1]
Event = Callable[[dict[str, Any]], None]
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


class Stop(StrEnum):
    EXITED = "exited"
    MINUTES = "minutes"
    TOKENS = "tokens"
    ALARM = "alarm"


@dataclass(frozen=True, kw_only=True)
class _Job:
    project: Project
    experiment: str
    spec: Spec
    command: list[str]
    python: dict[str, Any]
    sandbox: Sandbox
    inherited: Mapping[str, str]
    grace: float
    on_event: Event


def run_program(
    project: Project,
    experiment: str,
    *,
    sandbox: Sandbox,
    inherited: Mapping[str, str] | None = None,
    grace_s: float = 10.0,
    on_event: Event = lambda event: None,
) -> ProgramReport:
    """Start the trainer once and judge what it brings. Runs that a dead supervisor left behind are closed first.

    Raises RefusedError (no_training_program, already_completed, already_training), MissingExtraError, RunError; what
    the trainer does wrong is a status and problems, never an error.
    """
    interrupts = Interrupts()
    with supervising(project.layout, experiment), interrupts.taken():
        spec = program_spec(project, experiment)
        close_abandoned(project, experiment)
        if any(run.status is RunStatus.COMPLETED for run in project.ledger.runs(experiment)):
            raise RefusedError(
                f"{experiment} has a completed run.", mend="Make a new specification.", code="already_completed"
            )
        interpreter = require_interpreter(project.settings)
        job = _Job(
            project=project,
            experiment=experiment,
            spec=spec,
            command=_command(spec, interpreter),
            python=ask_python(interpreter, sandbox),
            sandbox=sandbox,
            inherited=os.environ if inherited is None else inherited,
            grace=grace_s,
            on_event=on_event,
        )
        _require_packages(job)
        with interrupts.held():
            return _one_run(job, interrupts)


def _command(spec: Spec, interpreter: str) -> list[str]:
    if spec.backend is Backend.COMMAND:
        return with_interpreter(list(spec.command or ()), interpreter)
    return [interpreter, "-m", trainer_module(spec.backend)]


def _require_packages(job: _Job) -> None:
    have = {name.lower() for name in job.python["packages"]}
    missing = [name for name in PACKAGES.get(job.spec.backend, ()) if name not in have]
    if missing:
        raise MissingExtraError(
            f"{job.spec.backend} needs {', '.join(missing)}, which the project's interpreter does not have.",
            mend=f"Install it there: `pip install {' '.join(missing)}`, or `pip install 'experiment-harness[train]'`.",
        )


def _one_run(job: _Job, interrupts: Interrupts) -> ProgramReport:
    project, token = job.project, secrets.token_hex(16)
    run = project.ledger.register_run(
        experiment=job.experiment,
        seed=job.spec.seed,
        argv=list(job.spec.command or [job.spec.backend.value]),
        code=job.spec.code_hash,
        data={"train": job.spec.dataset["sha256"]},
        environment=describe(job.python, job.inherited),
        cage=job.sandbox.kind.value,
        token=hashlib.sha256(token.encode()).hexdigest(),
        session=None,
    )
    name = f"{run.experiment}/{run.id}"
    job.on_event({"kind": "run", "run": name, "text": f"{name}  {job.spec.backend}: started"})
    make_folder(project.layout.run(run.experiment, run.id))
    try:
        report = _dry(job, run) if job.spec.backend is Backend.DRY_RUN else _supervise(job, run, token, interrupts)
    finally:
        remove_private(run.token)
    job.on_event({"kind": "run", "run": name, "text": f"{name}  {report.run.status}: {report.run.reason}"})
    if report.run.status is RunStatus.CANCELLED:
        raise KeyboardInterrupt
    return report


def _dry(job: _Job, run: Run) -> ProgramReport:
    """Through the same validation as every other result."""
    project, spec = job.project, job.spec
    _, digest = write_spec(project, run, spec)
    before = hashes_now(project, spec)
    project.ledger.append(RunStarted(experiment=run.experiment, run=run.id, supervisor=identity(), **identity()))
    run = project.ledger.run(run.experiment, run.id)
    observed: dict[str, Any] = {"base_model_sha256": before["base_model_sha256"]}
    try:
        observed["dataset_sha256"], rows = rows_of(project.layout.root / spec.dataset["path"])
        observed["dataset_rows"] = len(rows)
    except (NotFoundError, ValueError):
        observed |= {"dataset_sha256": before["dataset_sha256"], "dataset_rows": 0}
    result = dry_result(spec, run=run.id, experiment=run.experiment, spec_sha256=digest, observed=observed)
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
    return judge_result(project, run, spec, Read(result=result, source="dry-run"), seen, seconds=0.0)


def _supervise(job: _Job, run: Run, token: str, interrupts: Interrupts) -> ProgramReport:
    project, spec, clock = job.project, job.spec, job.project.clock
    path, digest = write_spec(project, run, spec)
    write_run_json(project.layout, run)
    before = hashes_now(project, spec)
    rows, alarms = run_rows(project.layout, run), RunAlarms(project, run)
    try:
        launched = _launch(job, run, token, path)
    except (OSError, HarnessError) as error:
        ending = Ending(status=RunStatus.FAILED, reason=f"never started: {error}")
        return ProgramReport(run=close_run(project, run, rows, ending), model=None, problems=())
    witness, begun, how = Witness(rows, clock), clock.monotonic(), None
    tokens = _Tokens()
    try:
        own = identity(launched.process.pid)
        project.ledger.append(RunStarted(experiment=run.experiment, run=run.id, supervisor=identity(), **own))
        run = project.ledger.run(run.experiment, run.id)
        write_run_json(project.layout, run)
        with interrupts.heeded():
            how = _watch(launched, witness, alarms, tokens, spec, clock)
    except KeyboardInterrupt:
        how = None
    finally:
        seconds = clock.monotonic() - begun
        left = end_process(launched.process, run.token, grace=job.grace)
        launched.finish_output()
    late = witness.look()
    alarms.take(late)
    tokens.take(late)
    findings = [*leftovers(run, left), *witness.findings()]
    seen = Observed(
        experiment=run.experiment,
        run=run.id,
        spec_sha256=digest,
        exit_code=launched.process.returncode,
        output=output_folder(project, run),
        minutes=seconds / 60,
        tokens=tokens.most,
        rows=rows.count,
        before=before,
        after=hashes_now(project, spec),
    )
    cut = _cut(run, how, spec, tokens, alarms, findings, seconds)
    if cut is not None:
        closed = close_run(project, run, read_all(project.layout, run), cut)
        return ProgramReport(run=closed, model=None, problems=())
    read = read_result(project.layout.run(run.experiment, run.id, "stdout"), seen.output / "result.json")
    return judge_result(project, run, spec, read, seen, seconds=seconds, findings=findings)


class _Tokens:
    """The largest `tokens_seen` that rows told of."""

    def __init__(self) -> None:
        self.most: float | None = None

    def take(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            metrics = row.get("metrics")
            value = metrics.get("tokens_seen") if isinstance(metrics, dict) else None
            if isinstance(value, int | float) and not isinstance(value, bool):
                self.most = max(self.most or 0.0, float(value))


def _watch(launched: Launched, witness: Witness, alarms: RunAlarms, tokens: _Tokens, spec: Spec, clock: Clock) -> Stop:
    begun = clock.monotonic()
    while not launched.ended(0.1):
        new = witness.look()
        alarms.take(new)
        tokens.take(new)
        if alarms.fatal() is not None:
            return Stop.ALARM
        if (tokens.most or 0) > spec.budget["tokens"]:
            return Stop.TOKENS
        if clock.monotonic() - begun > spec.budget["minutes"] * 60:
            return Stop.MINUTES
    return Stop.EXITED


def _cut(
    run: Run,
    how: Stop | None,
    spec: Spec,
    tokens: _Tokens,
    alarms: RunAlarms,
    findings: list[Finding],
    seconds: float,
) -> Ending | None:
    """How a run ended that did not end by itself; None for one that did: its result is then judged."""
    ending = Ending(status=RunStatus.KILLED, reason="", seconds=seconds, findings=findings)
    fatal = alarms.fatal()
    if how is None:
        return replace(ending, status=RunStatus.CANCELLED, reason="it was stopped by a person or a signal")
    if how is Stop.MINUTES:
        return replace(ending, reason=f"ended at budget.minutes, {spec.budget['minutes']:g}")
    if how is Stop.TOKENS:
        return replace(ending, reason=f"ended at budget.tokens, {spec.budget['tokens']}: {tokens.most:.0f} were seen")
    if how is Stop.ALARM and fatal is not None:
        reason = f"stopped by the alarm {fatal.code} at row {fatal.row}: {fatal.message}"
        return replace(ending, reason=reason, findings=[stopped(run, fatal), *findings])
    return None


def _launch(job: _Job, run: Run, token: str, spec_file: Path) -> Launched:
    layout, private = job.project.layout, make_private(run.token)
    folder, output = layout.run(run.experiment, run.id), output_folder(job.project, run)
    given = run_variables(
        project=layout.root, experiment=run.experiment, run=run.id, run_dir=folder, token=token, seed=run.seed
    )
    given |= {**OFFLINE, "PYTHONHASHSEED": str(run.seed), variables.ATTEMPT: str(run.attempt)}
    if job.spec.hardware_tier is Tier.CPU:
        given["CUDA_VISIBLE_DEVICES"] = ""
    given |= prepare_private(private, python=job.python)
    words = [*job.command, "--spec", str(spec_file), "--output-dir", str(output)]
    return launch(
        job.sandbox.command(words, _confinement(job, folder, private), memory_bytes=_memory(job.spec)),
        cwd=layout.root,
        environment=child_environment(job.inherited, private, given),
        stdout=layout.run(run.experiment, run.id, "stdout"),
        stderr=layout.run(run.experiment, run.id, "stderr"),
        further=False,
    )


def _memory(spec: Spec) -> int | None:
    """A GPU's driver maps more address space than any machine has memory: no limit there."""
    return machine_share() if spec.hardware_tier is Tier.CPU else None


def _confinement(job: _Job, folder: Path, private: Path) -> Confinement:
    """It reads the project without its control folder, dataset and base model; it writes in the run's folder only, and
    the benchmark is not there (bwrap)."""
    layout, spec = job.project.layout, job.spec
    model = [] if spec.model["path"] is None else [spec.model["path"]]
    readable = [layout.root, layout.root / spec.dataset["path"], *model, *job.project.settings.readable]
    benchmark = (layout.root / spec.benchmark["path"]).resolve()
    can_hide = job.sandbox.kind is CageKind.BWRAP  # Landlock takes nothing away below what it grants
    hidden = [benchmark] if can_hide and benchmark.is_relative_to(layout.root) else []
    if not any(Path(path).is_relative_to(layout.state) for path in model):
        hidden.append(layout.state)
    return Confinement(
        writable=(folder, private),
        read_only=tuple(path for path in map(Path, [*readable, *job.python["prefixes"], _PACKAGE]) if path.exists()),
        hidden=tuple(hidden),
    )
