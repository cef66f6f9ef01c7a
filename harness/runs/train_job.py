"""Everything that the runs of one `train` call share, checked before the first is registered."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.artifacts.code_snapshot import Snapshot, take_snapshot
from harness.contract.artifacts import ARTIFACTS, HUMAN, Scope
from harness.domain.commands import with_interpreter
from harness.domain.records import Run
from harness.domain.sandbox import Confinement, Sandbox
from harness.domain.statuses import CLOSED_EXPERIMENTS, RunStatus, SandboxKind
from harness.errors import RefusedError
from harness.evaluation.scores import counted_runs
from harness.guard.control_files import in_place, protected_paths
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.plans.approved import data_hashes, data_paths, frozen_changes, plan_of
from harness.plans.parse import Plan, plan_from
from harness.runs.environment import ask_python, describe
from harness.settings import require_interpreter

_PACKAGE = Path(__file__).resolve().parents[1]
_READ_ONLY = (".harness", ".git")


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
    snapshot: Snapshot
    data: dict[str, str]
    python: dict[str, Any]
    environment: dict[str, Any]
    sandbox: Sandbox
    session: str | None
    inherited: Mapping[str, str]

    def completed(self) -> dict[int, Run]:
        """Seed -> its completed run of this code and command."""
        # Judged by the newest run: seeds of different code are no repetitions of one experiment, so
        # after a change all seeds are trained again.
        runs = self.project.ledger.runs(self.experiment)
        if not runs or (runs[-1].code, list(runs[-1].argv)) != (self.snapshot.hash, self.argv):
            return {}
        return {run.seed: run for run in counted_runs(runs) if run.status is RunStatus.COMPLETED}

    def seconds_left(self) -> float:
        """What all runs of the plan so far left of its total_minutes."""
        return self.plan.budget.total_minutes * 60 - self.project.ledger.training_seconds(
            self.approved.name
        )

    def code_changes(self) -> list[str]:
        """Paths of the registered snapshot that changed or are gone; new files are outputs."""
        now = take_snapshot(
            self.project.layout.root, self.project.layout.objects, exclude=data_paths(self.approved)
        )
        before = {**self.snapshot.files, **self.snapshot.links}
        after = {**now.files, **now.links}
        return sorted(path for path, digest in before.items() if after.get(path) != digest)

    def confinement(self, run_dir: Path, private: Path) -> Confinement:
        """Training writes in the project, except to what judges it; it has no network and no state
        directory."""
        root = self.project.layout.root
        names = {
            artifact.path
            for artifact in ARTIFACTS
            if artifact.scope is Scope.PROJECT and artifact.writer == HUMAN
        }
        names |= {*_READ_ONLY, self.approved.path, *self.approved.scorer["files"]}
        protected = in_place(
            root, [*(root / name for name in sorted(names)), *protected_paths(root)]
        )
        # A table behind a link is read where it lies, through `readable`; its hash was
        # checked before.
        data = [
            path
            for name in data_paths(self.approved)
            if (path := root / name).resolve().is_relative_to(root)
        ]
        readable = [
            *protected,
            *data,
            *self.project.settings.readable,
            *self.python["prefixes"],
            _PACKAGE,
        ]
        return Confinement(
            writable=(root, run_dir, private),
            read_only=tuple(path for path in map(Path, readable) if path.exists()),
            hidden=(self.project.layout.state,),
        )


def prepare(
    project: Project,
    experiment: str,
    argv: Sequence[str] | None,
    *,
    sandbox: Sandbox,
    session: str | None,
    inherited: Mapping[str, str],
) -> TrainJob:
    """Raises RefusedError when plan, scorer or data changed, the experiment is closed, or a
    required sandbox is absent; ConfigError without an interpreter, RunError when it fails."""
    record = project.ledger.experiment(experiment)
    if record.status in CLOSED_EXPERIMENTS:
        raise RefusedError(
            f"{experiment} is {record.status}: it gets no further runs.",
            hint="Open a new experiment with it as the parent.",
            code="experiment_closed",
        )
    if project.ledger.program(experiment) is not None:
        raise RefusedError(
            f"{experiment} is a training program.",
            hint=f"Start it with `harness posttrain run {experiment}`.",
            code="training_program",
        )
    approved = plan_of(project, record)
    plan = plan_from(approved.content)
    if changes := frozen_changes(project, approved):
        message = " ".join(finding.message for finding in changes)
        raise RefusedError(message, hint=changes[0].hint, code=changes[0].code)
    if plan.sandbox == "required" and sandbox.kind is SandboxKind.NONE:
        raise RefusedError(
            "The plan says `sandbox: required`, and there is no sandbox.",
            hint="Install bubblewrap or use a kernel with Landlock.",
            code="isolation_absent",
        )
    words = list(argv) if argv else shlex.split(plan.training.entry)
    interpreter = require_interpreter(project.settings)
    python = ask_python(interpreter, sandbox)
    layout = project.layout
    snapshot = take_snapshot(layout.root, layout.objects, exclude=data_paths(approved))
    return TrainJob(
        project=project,
        experiment=experiment,
        plan=plan,
        approved=approved,
        argv=words,
        command=with_interpreter(words, interpreter),
        snapshot=snapshot,
        data=data_hashes(approved),
        python=python,
        environment=describe(python, inherited),
        sandbox=sandbox,
        session=session,
        inherited=inherited,
    )
