"""The choice of a branch as a decision, and the branch's code where a session can read it."""

import shutil
from dataclasses import dataclass

from harness.artifacts.code_snapshot import load_snapshot, materialise
from harness.artifacts.training_code import changed_files
from harness.contract.artifacts import RUNS
from harness.decisions.experiments import decide
from harness.domain.statuses import DecisionKind
from harness.evaluation.scores import counted_runs
from harness.ledger.project import Project
from harness.loop.steps import Build
from harness.runs.train_job import code_now

BY = "harness"
_LOOKED_AT = 100
"""Decisions back, for one that was recorded before a cut."""
_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class BranchCode:
    """The parent's code where it is not what the files say now."""

    folder: str
    """From the project's root; git ignores it."""
    differing: tuple[str, ...]
    """Files that differ, or are in one of both only; at most twenty."""
    more: int

    @property
    def words(self) -> str:
        more = f" and {self.more} more" if self.more else ""
        return (
            f"The files here are of another branch. Its own are in `{self.folder}`; before you"
            f" change anything, take over those that differ: {', '.join(self.differing)}{more}."
        )


def record_choice(project: Project, step: Build) -> None:
    """Record what the experiment builds on and what else there was; once, however often its
    session is started."""
    choice = step.choice
    if choice is None:
        return
    plan = project.plan()
    context = f"Experiment {step.index} of plan {plan.name}: which branch does it build on?"
    for one in project.ledger.decisions(newest=_LOOKED_AT):
        if one.kind is DecisionKind.BRANCH and one.context == context:
            return
    decide(
        project,
        kind=DecisionKind.BRANCH,
        experiment=None,
        by=BY,
        context=context,
        choice=f"It builds on {choice.parent}.",
        alternatives=choice.alternatives,
        reason=choice.reason,
        confidence="medium",
    )


def branch_code(project: Project, parent: str | None) -> BranchCode | None:
    """Lay the parent's registered code out beside its runs, if it differs from the files now."""
    runs = [] if parent is None else counted_runs(project.ledger.runs(parent))
    if parent is None or not runs:
        return None
    layout = project.layout
    then = load_snapshot(layout.objects, runs[-1].code)
    differing = sorted(changed_files(then, code_now(project, project.plan())))
    if not differing:
        return None
    folder = layout.experiment(parent) / RUNS / "code"
    if folder.is_symlink():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    materialise(then, layout.objects, folder, live=layout.root)
    return BranchCode(
        folder=layout.relative(folder),
        differing=tuple(differing[:_SHOWN]),
        more=max(0, len(differing) - _SHOWN),
    )
