"""Everything that the runs of one `train` call share, checked before the first is registered."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.artifacts.code_snapshot import Snapshot, is_left_out, load_snapshot, take_snapshot
from harness.artifacts.commit_snapshot import head_of, take_commit
from harness.artifacts.git import lists
from harness.domain.commands import with_interpreter
from harness.domain.findings import Finding
from harness.domain.records import Experiment, Run
from harness.domain.sandbox import Confinement, Sandbox
from harness.domain.statuses import RunStatus, SandboxKind, require_open_experiment
from harness.errors import RefusedError
from harness.evaluation.scores import counted_runs, started
from harness.gates.findings import finding
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.plans.approved import data_hashes, data_paths, declared, plan_of, require_unchanged
from harness.plans.judge import require_judge
from harness.plans.parse import Plan, plan_from
from harness.runs.environment import PACKAGE, ask_python, describe, training_libraries
from harness.runs.many_processes import Many, require_ports
from harness.runs.workspace import Workspace, make_workspace, readable_below
from harness.settings import require_interpreter


@dataclass(frozen=True, kw_only=True)
class TrainJob:
    project: Project
    experiment: str
    plan: Plan
    approved: ApprovedPlan
    argv: list[str]
    """As it was asked for."""
    command: list[str]
    """With the interpreter's path."""
    interpreter: str
    snapshot: Snapshot
    data: dict[str, str]
    python: dict[str, Any]
    environment: dict[str, Any]
    sandbox: Sandbox
    session: str | None
    inherited: Mapping[str, str]
    commit: str | None = None
    """Whose code the snapshot is; None: the files as they are."""
    config: str | None = None
    """Hash of config.yaml, as `experiment_config.keep_config` gives it."""
    asked: Mapping[str, str] = field(default_factory=dict)
    """What --set says."""

    @property
    def record(self) -> Experiment:
        return self.project.ledger.experiment(self.experiment)

    def completed(self) -> dict[int, Run]:
        """Seed -> its completed run of this code and command."""
        # Judged by the newest run: seeds of different code are no repetitions of one experiment, so
        # after a change all seeds are trained again.
        runs = started(self.project.ledger.runs(self.experiment))
        if not runs or (runs[-1].code, list(runs[-1].argv)) != (self.snapshot.hash, self.argv):
            return {}
        return {run.seed: run for run in counted_runs(runs) if run.status is RunStatus.COMPLETED}

    def seconds_left(self) -> float:
        """What all runs of the plan so far left of its total_minutes; an open one, of another
        tree, may still take as long as a run may."""
        budget, ledger = self.plan.budget, self.project.ledger
        most = budget.run_minutes * 60
        kept = sum(max(0.0, most - (run.seconds or 0.0)) for run in self.open_runs())
        return budget.total_minutes * 60 - ledger.training_seconds(self.approved.name) - kept

    def open_runs(self) -> list[Run]:
        """Of the plan."""
        ledger = self.project.ledger
        return [
            run
            for run in ledger.open_runs()
            if ledger.experiment(run.experiment).plan == self.approved.name
        ]

    @property
    def ran_by(self) -> str:
        """The Python that ran the command, else the program whose Python nobody knows."""
        beside = os.path.dirname(self.command[0]) == os.path.dirname(self.interpreter)
        return self.interpreter if beside else self.command[0]

    def workspace(self, run: Run) -> Workspace:
        layout = self.project.layout
        return make_workspace(
            layout,
            run.token,
            self.snapshot,
            self.sandbox,
            data=declared(self.approved),
            readable=self.project.settings.readable,
            named=self.python["prefixes"],
            run_dir=layout.run(run.experiment, run.id),
        )

    def confinement(self, workspace: Workspace) -> Confinement:
        """Training sees its workspace in the project's place; it has no network and no state
        directory."""
        return Confinement(
            placed=workspace.placed,
            read_only=(*workspace.read_only, PACKAGE),
            hidden=(self.project.layout.state,),
        )


def prepare(
    project: Project,
    experiment: str,
    argv: Sequence[str] | None,
    *,
    replicas: int | None = None,
    sandbox: Sandbox,
    session: str | None,
    inherited: Mapping[str, str],
    registered: bool = False,
    code: str | None = None,
    ranks: int | None = None,
) -> TrainJob:
    """Prepare it; `registered`: with the code of its newest run; `code`: with a registered
    snapshot, by its hash.

    Raises RefusedError when the judge, plan, scorer or data changed, the experiment is closed,
    or a required sandbox is absent; ConfigError without an interpreter, RunError when it fails.
    """
    record = project.ledger.experiment(experiment)
    require_open_experiment(experiment, record.status)
    require_no_program(project, experiment)
    approved = plan_of(project, record)
    many = Many(replicas=replicas, ranks=ranks)
    asked = admitted(project, approved, argv, sandbox=sandbox, many=many)
    interpreter = require_interpreter(project.settings)
    python = ask_python(interpreter, sandbox)
    if registered and (runs := project.ledger.runs(experiment)):
        code = runs[-1].code
    known = None if code is None else load_snapshot(project.layout.objects, code)
    snapshot = known or code_now(project, approved)
    libraries = training_libraries(project.layout, [asked.command[0], interpreter], python)
    head = head_of(project.layout.root)
    at = {} if head is None else {"commit": head}
    return TrainJob(
        project=project,
        experiment=experiment,
        plan=asked.plan,
        approved=approved,
        argv=asked.argv,
        command=asked.command,
        interpreter=interpreter,
        snapshot=snapshot,
        data=data_hashes(approved),
        python=python,
        environment=describe(python, inherited, libraries) | at,
        sandbox=sandbox,
        session=session,
        inherited=inherited,
    )


def require_no_program(project: Project, experiment: str) -> None:
    """Raises RefusedError (training_program)."""
    if project.ledger.program(experiment) is not None:
        raise RefusedError(
            f"{experiment} is a training program.",
            hint=f"Start it with `harness posttrain run {experiment}`.",
            code="training_program",
        )


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A training that the plan in force allows, of whatever experiment."""

    plan: Plan
    argv: list[str]
    """As it was asked for."""
    command: list[str]
    """With the interpreter's path."""


def admitted(
    project: Project,
    approved: ApprovedPlan,
    argv: Sequence[str] | None,
    *,
    sandbox: Sandbox,
    many: Many | None = None,
) -> Asked:
    """`argv`, by default the plan's training.entry, for so many processes. Raises as `prepare`."""
    require_judge(project)
    plan = plan_from(approved.content)
    require_unchanged(project, approved, without_secret=True)
    if plan.sandbox == "required" and sandbox.kind is SandboxKind.NONE:
        raise RefusedError(
            "The plan says `sandbox: required`, and there is no sandbox.",
            hint="Install bubblewrap or use a kernel with Landlock.",
            code="isolation_absent",
        )
    words = (many or Many()).words(argv or shlex.split(plan.training.entry))
    require_ports(words, sandbox)
    interpreter = require_interpreter(project.settings)
    return Asked(plan=plan, argv=words, command=with_interpreter(words, interpreter))


def code_now(project: Project, approved: ApprovedPlan) -> Snapshot:
    """The code as it is, without the plan's tables and the data that config.toml names."""
    layout = project.layout
    exclude = _no_code(project, approved)
    return take_snapshot(layout.root, layout.objects, exclude=exclude, index=layout.code_index)


def code_of(project: Project, approved: ApprovedPlan, commit: str) -> Snapshot:
    """As `code_now`, of a commit."""
    layout = project.layout
    exclude = _no_code(project, approved)
    return take_commit(layout.root, commit, layout.objects, exclude=exclude)


def _no_code(project: Project, approved: ApprovedPlan) -> list[str]:
    layout = project.layout
    data = readable_below(layout.root, project.settings.readable)
    return [*data_paths(approved), *(layout.relative(path) for path in data)]


def counts_as_code(project: Project, path: Path) -> bool:
    """Whether the file at `path` is part of the code: as a new one it makes other code, and all
    seeds are trained again. Raises GitFailedError."""
    root = project.layout.root.resolve()
    place = path.parent.resolve() / path.name
    if not place.is_relative_to(root):
        return False
    name, approved = place.relative_to(root).as_posix(), project.ledger.plan()
    out = set() if approved is None else set(_no_code(project, approved))
    return not is_left_out(name, out) and lists(root, name)


def not_copied(
    snapshot: Snapshot,
    on_event: Callable[[dict[str, Any]], None],
) -> list[Finding]:
    """What is said of files that are too large to be code."""
    names = snapshot.too_large
    if not names:
        return []
    shown = ", ".join(names[:5])
    if len(names) > 5:
        shown += f" and {len(names) - 5} more"
    found = finding(
        "files_not_copied",
        "Not copied for training, for each has more than 50 MB and git neither tracks nor ignores"
        f" it: {shown}.",
        paths=list(names[:20]),
    )
    text = f"{found.message} {found.hint}"
    on_event({"kind": found.code, "text": text})
    return [found]
