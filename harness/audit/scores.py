"""Which recorded evaluations are an experiment's score, and how it compares with its parent's."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness.artifacts.plan import plan_from
from harness.domain.records import ApprovedPlan, Evaluation, Experiment, Objective, Run
from harness.domain.statuses import Split
from harness.errors import RefusedError
from harness.evaluation.noise_floor import compare, compare_to_baseline
from harness.evaluation.score import Score, row_noise, summarise
from harness.gates.evidence import counted_runs
from harness.project.context import Project

TRIVIAL = "trivial predictor"


def plan_of(project: Project, experiment: Experiment) -> ApprovedPlan:
    """The newest version of the plan that the experiment was opened under. Raises RefusedError when there is none."""
    versions = [plan for plan in project.ledger.plans() if plan.name == experiment.plan]
    if not versions:
        raise RefusedError(
            f"{experiment.id} was opened without an approved plan, so nothing says how to judge it.",
            mend="A person approves a plan with `harness plan approve plan.md`; then open a new experiment.",
            code="no_plan",
        )
    return versions[-1]


def objective_of(approved: ApprovedPlan) -> Objective:
    return plan_from(approved.content).objective()


def counted_evaluations(
    project: Project, experiment: str, approved: ApprovedPlan, split: Split, runs: Sequence[Run] | None = None
) -> list[Evaluation]:
    """One evaluation a counted run: the newest of its final checkpoint under the plan version in force."""
    ledger = project.ledger
    counted = counted_runs(ledger.runs(experiment)) if runs is None else runs
    finals = {item.run: item.id for item in ledger.checkpoints(experiment) if item.final}
    newest = {
        item.run: item
        for item in ledger.evaluations(experiment, split)
        if item.plan_version == approved.version and finals.get(item.run) == item.checkpoint
    }
    return [newest[run.id] for run in counted if run.id in newest]


def plain_score(score: Score | None) -> dict[str, Any] | None:
    return None if score is None else score.plain()


def compared(project: Project, experiment: Experiment, approved: ApprovedPlan) -> dict[str, Any] | None:
    """{against, split, difference, floor, better, why} on validation, where experiments compete; None without a score.

    Against the parent, when it was scored under the same version of the plan, else the trivial predictor.
    """
    own = summarise(counted_evaluations(project, experiment.id, approved, Split.VALIDATION))
    if own is None:
        return None
    objective = objective_of(approved)
    parent = experiment.parent
    other = summarise(counted_evaluations(project, parent, approved, Split.VALIDATION)) if parent is not None else None
    if other is not None:
        result = compare(own.values, other.values, objective, row_noise=row_noise(own, other))
    elif own.baseline is not None:
        parent, result = TRIVIAL, compare_to_baseline(own.values, own.baseline, objective, row_noise=row_noise(own))
    else:
        return None
    return {"against": parent, "split": Split.VALIDATION.value, **asdict(result)}
