"""`harness posttrain run`: one supervised run of a training program, its result judged."""

import os
from collections.abc import (
    Iterable,
    Mapping,
)
from dataclasses import (
    dataclass,
    field,
)
from pathlib import Path
from typing import Any

from harness.artifacts.code_snapshot import (
    Snapshot,
    take_snapshot,
)
from harness.artifacts.metrics_file import Row
from harness.domain import variables
from harness.domain.commands import with_interpreter
from harness.domain.records import Run
from harness.domain.sandbox import (
    Confinement,
    Sandbox,
    machine_share,
)
from harness.errors import (
    TRAIN,
    HarnessError,
    MissingExtraError,
)
from harness.ledger.facts import (
    RunStarted,
    local_job,
)
from harness.ledger.project import Project
from harness.plans.judge import require_judge
from harness.posttrain.code_hashes import code_hash
from harness.posttrain.dry_run import dry_result
from harness.posttrain.resume import (
    Stopped,
    set_earlier_aside,
    stopped_run,
)
from harness.posttrain.specification import Specification
from harness.posttrain.tokens import Tokens
from harness.posttrain.training_judgement import (
    ProgramReport,
    hashes_now,
    judge_result,
    known,
    make_folder,
    output_folder,
    program_spec,
    require_not_completed,
    write_spec,
)
from harness.posttrain.untrusted_json import read_json_lines
from harness.posttrain.validation import (
    Observed,
    ReportedResult,
    read_result,
)
from harness.posttrain.vocabulary import (
    Backend,
    HardwareTier,
)
from harness.process import identity
from harness.runs.closing import close_abandoned, close_run
from harness.runs.endings import (
    Ending,
    Interrupts,
    at_limit,
)
from harness.runs.environment import (
    OFFLINE,
    PACKAGE,
    ask_python,
    describe,
    training_libraries,
)
from harness.runs.lock import supervising
from harness.runs.many_processes import (
    require_no_replicas,
    shards,
    shared,
    trainer_ranks,
    with_ranks,
)
from harness.runs.run_tail import Event, RunRows
from harness.runs.supervisor import (
    EndedRun,
    RegisteredRun,
    SupervisedRun,
    announce,
    announce_end,
    new_token,
    supervise,
)
from harness.runs.workspace import (
    Workspace,
    make_workspace,
    readable_below,
)
from harness.settings import require_interpreter


def run_program(
    project: Project,
    experiment: str,
    *,
    sandbox: Sandbox,
    inherited: Mapping[str, str] | None = None,
    grace_s: float = 10.0,
    resume: bool = False,
    launcher: str | None = None,
    on_event: Event = lambda event: None,
) -> ProgramReport:
    """Start the trainer once and judge its result. Runs that a dead supervisor left are closed
    first. With `resume` the newest run goes on in its own folder, where its checkpoints lie.

    Raises RefusedError (no_training_program, already_completed, already_training, judge_changed,
    and what `stopped_run` raises), UsageError (distributed_invalid), MissingExtraError, RunError;
    what the trainer does wrong is a value.
    """
    interrupts = Interrupts()
    require_judge(project)
    with supervising(project.layout, experiment), interrupts.taken():
        spec = program_spec(project, experiment)
        project.require_here(experiment)
        close_abandoned(project, experiment)
        require_not_completed(project, experiment)
        require_no_replicas(project, experiment)
        stopped = stopped_run(project, spec, experiment, sandbox) if resume else None
        interpreter = require_interpreter(project.settings)
        dry = spec.backend is Backend.DRY_RUN
        task = ProgramRun(
            project=project,
            sandbox=sandbox,
            python=ask_python(interpreter, sandbox),
            inherited=os.environ if inherited is None else inherited,
            on_event=on_event,
            grace=grace_s,
            experiment=experiment,
            spec=spec,
            interpreter=interpreter,
            stopped=stopped,
            ranks=None if dry else trainer_ranks(project.settings, launcher, sandbox),
        )
        _require_packages(spec, task.python)
        with_ranks(spec.command or ["python", ""], task.ranks)  # refused before it is registered
        if dry:
            with interrupts.held():
                return _dry_run(task)
        return supervise(task, interrupts)


@dataclass(kw_only=True)
class ProgramRun(SupervisedRun[ProgramReport]):
    """The run of a training program. Its budgets hold for all its attempts together."""

    experiment: str
    spec: Specification
    interpreter: str
    stopped: Stopped | None
    ranks: int | None = None
    """Processes that share each step; None: one."""
    tokens: Tokens = field(default_factory=Tokens)
    spec_file: Path = field(init=False)
    spec_sha256: str = field(init=False)
    hashes: dict[str, str | None] = field(init=False)
    """Of what the trainer reads, before it starts."""
    earlier: float = field(init=False)
    """Seconds that earlier attempts took."""

    def register(self) -> RegisteredRun:
        ledger = self.project.ledger
        programs = [*(self.spec.command or [])[:1], require_interpreter(self.project.settings)]
        libraries = training_libraries(self.project.layout, programs, self.python)
        environment = describe(self.python, self.inherited, libraries)
        caller = str(self.project.caller_for(self.experiment))
        if self.stopped is not None:
            before = self.stopped.run
            run = ledger.resume_run(
                experiment=before.experiment,
                run=before.id,
                environment=environment,
                session=None,
                caller=caller,
            )
            set_earlier_aside(self.project, run, before.attempt)
            return RegisteredRun(run=run, token=self.stopped.token, began=None)
        token, digest = new_token()
        run = ledger.register_run(
            experiment=self.experiment,
            seed=self.spec.seed,
            argv=list(self.spec.command or [self.spec.backend.value]),
            code=self.spec.code_hash,
            data={"train": self.spec.dataset["sha256"]},
            environment=environment,
            sandbox=self.sandbox.kind.value,
            session=None,
            caller=caller,
            token=digest,
        )
        return RegisteredRun(run=run, token=token, began=make_folder(self.project, run))

    def shown(self) -> str:
        return self.spec.backend.value

    def prepare(self, run: Run) -> None:
        self.spec_file, self.spec_sha256 = write_spec(self.project, run, self.spec)
        self.hashes, self.earlier = hashes_now(self.project, self.spec), run.seconds or 0.0

    def words(self, run: Run) -> list[str]:
        if self.spec.backend is Backend.COMMAND:
            command = with_ranks(self.spec.command or (), self.ranks)
            words = with_interpreter(command, self.interpreter)
        else:
            words = shared([self.interpreter, "-m", self.spec.backend.module], self.ranks)
        output = output_folder(self.project, run)
        return [*words, "--spec", str(self.spec_file), "--output-dir", str(output)]

    def variables(self, run: Run) -> dict[str, str]:
        spent = {
            variables.SPENT_SECONDS: str(self.earlier),
            variables.SPENT_TOKENS: str(int(self.tokens.spent)),
        }
        device = {"CUDA_VISIBLE_DEVICES": ""} if self._is_cpu() else {}
        shard = shards(self.project.settings, self.ranks)
        return {**OFFLINE, "PYTHONHASHSEED": str(run.seed), **spent, **device, **shard}

    def workspace(self, run: Run) -> Workspace:
        """The dataset, as it was specified, base model and teacher; with a command of the project
        its code, too. Of the benchmark nothing."""
        layout, spec, settings = self.project.layout, self.spec, self.project.settings
        models = (spec.model, spec.teacher or {"path": None})
        model = [one["path"] for one in models if one["path"] is not None]
        dataset = layout.root / spec.dataset["path"]
        inside = layout.root in dataset.parents
        no_code = readable_below(
            layout.root,
            [dataset, *model, *settings.readable, layout.root / spec.benchmark["path"]],
        )
        made = make_workspace(
            layout,
            run.token,
            self._code(no_code),
            self.sandbox,
            data={spec.dataset["path"]: spec.dataset["sha256"]} if inside else {},
            readable=settings.readable,
            named=[*model, *self.python["prefixes"]],
            run_dir=layout.run(run.experiment, run.id),
        )
        # Of what will run; the live files may be others by now.
        command = None if spec.command is None else made.words(spec.command)
        self.hashes["code_hash"] = known(
            lambda: code_hash(spec.backend, command, settings, made.path)
        )
        # Where nothing is moved, it reads the copy of the dataset at the copy's own path.
        self.spec_file, self.spec_sha256 = write_spec(self.project, run, spec, root=made.seen)
        return made

    def _code(self, no_code: Iterable[Path]) -> Snapshot:
        """The project's code; a trainer of the package needs none of it."""
        layout = self.project.layout
        if self.spec.backend is not Backend.COMMAND:
            return Snapshot(hash="", files={}, links={})
        return take_snapshot(
            layout.root,
            layout.objects,
            exclude=map(layout.relative, no_code),
            index=layout.code_index,
        )

    def confinement(self, workspace: Workspace) -> Confinement:
        """It reads its workspace, dataset, base model and packages; it writes in the run's folder
        and, like every training, in the workspace, which vanishes."""
        return Confinement(
            placed=workspace.placed,
            read_only=(*workspace.read_only, PACKAGE),
            hidden=(self.project.layout.state,),
        )

    def memory_bytes(self) -> int | None:
        # A GPU's driver maps more address space than any machine has memory: no limit there.
        return machine_share() if self._is_cpu() else None

    def take(self, rows: list[Row]) -> None:
        self.tokens.take(rows)

    def limit(self, elapsed: float, rows: RunRows) -> Ending | None:
        budget, spent = self.spec.budget, self.tokens.spent
        if spent > budget["tokens"]:
            return at_limit(f"ended at budget.tokens, {budget['tokens']}: {spent:.0f} were seen")
        if self.earlier + elapsed > budget["minutes"] * 60:
            return at_limit(f"ended at budget.minutes, {budget['minutes']:g}")
        return None

    def close(self, ended: EndedRun) -> ProgramReport:
        run, project = ended.run, self.project
        if ended.cut is not None:
            ending = ended.measured(ended.cut)
            closed = close_run(project, run, ended.rows, ending, told=ended.told)
            return ProgramReport(run=closed, model=None, problems=())
        seconds = ended.seconds or 0.0
        seen = Observed(
            experiment=run.experiment,
            run=run.id,
            spec_sha256=self.spec_sha256,
            exit_code=ended.exit_code,
            output=output_folder(project, run),
            minutes=(self.earlier + seconds) / 60,
            tokens=self.tokens.seen,
            spent=self.tokens.spent,
            rows=ended.rows.count,
            loss=self.tokens.loss,
            before=self.hashes,
            # Its code ran in the workspace, whatever became of the live files.
            after={**hashes_now(project, self.spec), "code_hash": self.hashes["code_hash"]},
            began=ended.began,
        )
        stdout = project.layout.run(run.experiment, run.id, "stdout")
        read = read_result(stdout, seen.output / "result.json")
        return judge_result(
            project,
            run,
            self.spec,
            read,
            seen,
            seconds=seconds,
            findings=ended.findings,
            told=ended.told,
        )

    def _is_cpu(self) -> bool:
        return self.spec.hardware_tier is HardwareTier.CPU


def _require_packages(spec: Specification, python: Mapping[str, Any]) -> None:
    """Raises MissingExtraError for what the project's interpreter lacks."""
    have = {name.lower() for name in python["packages"]}
    missing = [name for name in spec.backend.packages if name not in have]
    if missing:
        raise MissingExtraError(
            f"{spec.backend} needs {', '.join(missing)}, which the project's interpreter does not"
            " have.",
            hint=f"Install it there: `pip install {' '.join(missing)}`, or {TRAIN}.",
        )


def _dry_run(task: ProgramRun) -> ProgramReport:
    """No trainer is started; the result goes through the same validation as every other."""
    registered = task.register()
    announce(task, registered)
    run, project, spec = registered.run, task.project, task.spec
    task.prepare(run)
    project.ledger.append(
        RunStarted(
            experiment=run.experiment, run=run.id, supervisor=identity(), job=local_job(identity())
        )
    )
    run = project.ledger.run(run.experiment, run.id)
    observed: dict[str, Any] = {"base_model_sha256": task.hashes["base_model_sha256"]}
    try:
        observed["dataset_sha256"], rows = read_json_lines(
            project.layout.root / spec.dataset["path"]
        )
        observed["dataset_rows"] = len(rows)
    except HarnessError:
        observed |= {"dataset_sha256": task.hashes["dataset_sha256"], "dataset_rows": 0}
    result = dry_result(
        spec,
        run=run.id,
        experiment=run.experiment,
        spec_sha256=task.spec_sha256,
        observed=observed,
    )
    seen = Observed(
        experiment=run.experiment,
        run=run.id,
        spec_sha256=task.spec_sha256,
        exit_code=0,
        output=output_folder(project, run),
        minutes=0.0,
        tokens=None,
        rows=0,
        loss=None,
        before=task.hashes,
        after=task.hashes,
    )
    read = ReportedResult(result=result, source="dry-run")
    report = judge_result(project, run, spec, read, seen, seconds=0.0)
    announce_end(task, report.run)
    return report
