"""What an experiment is compared with, and which tries count beside it.

Facts of the ledger alone: a verdict's freshness can be told without the statistics.
"""

from collections.abc import Sequence
from typing import Any

from harness.domain.records import Experiment
from harness.domain.statuses import Split
from harness.evaluation.scores import recorded_evaluations, started
from harness.ledger.facts.evaluation import Evaluation
from harness.ledger.facts.plan import ApprovedPlan
from harness.ledger.project import Project


def reference_of(project: Project, experiment: Experiment, approved: ApprovedPlan) -> str | None:
    """The parent, when it was scored under this version of the plan."""
    if experiment.parent is None:
        return None
    recorded = recorded_evaluations(project, experiment.parent, approved, Split.VALIDATION)
    return experiment.parent if any(one.scored for one in recorded) else None


def has_scored_parent(project: Project, experiment: Experiment) -> bool:
    """Whether the experiment has a parent with a score, under whatever version of the plan."""
    if experiment.parent is None:
        return False
    evaluations = project.ledger.evaluations(experiment.parent, Split.VALIDATION)
    return any(evaluation.scored for evaluation in evaluations)


def earlier_tries(
    project: Project, approved: ApprovedPlan, candidate: str, reference: str | None
) -> list[Experiment]:
    """The plan's experiments before `candidate` that are compared with the same reference, oldest
    first."""
    number = project.ledger.experiment(candidate).number
    tries = []
    for experiment in sorted(project.ledger.experiments(), key=lambda one: one.number):
        another = experiment.plan != approved.name or experiment.number >= number
        if another or experiment.id == reference:
            continue
        if reference_of(project, experiment, approved) != reference:
            continue
        # With a parent that was scored under another version of the plan nothing was compared.
        if reference is not None or not has_scored_parent(project, experiment):
            tries.append(experiment)
    return tries


def left_behind(project: Project, approved: ApprovedPlan, experiment: str) -> list[str]:
    """The last run of each code and command that was scored on validation before the experiment
    went on with another."""
    # Each counts as a try: who looks, edits and looks again has chosen by validation.
    runs = project.ledger.runs(experiment)
    seen = {
        evaluation.run
        for evaluation in project.ledger.evaluations(experiment, Split.VALIDATION)
        if evaluation.scored and evaluation.plan_version == approved.version
    }
    last = {(run.code, tuple(run.argv)): run.id for run in runs if run.id in seen}
    if runs:
        newest = started(runs)[-1]
        last.pop((newest.code, tuple(newest.argv)), None)
    return list(last.values())


def comparison_inputs(
    project: Project, experiment: Experiment, approved: ApprovedPlan
) -> list[Any] | None:
    """All that the experiment's comparison depends on, as plain data. None without a score."""
    own = recorded_evaluations(project, experiment.id, approved, Split.VALIDATION)
    if not any(one.scored for one in own):
        return None
    reference = reference_of(project, experiment, approved)
    if reference is None and has_scored_parent(project, experiment):
        return [experiment.parent, approved.version, identities(own)]
    tries: list[Any] = [
        [
            earlier.id,
            left_behind(project, approved, earlier.id),
            identities(recorded_evaluations(project, earlier.id, approved, Split.VALIDATION)),
        ]
        for earlier in earlier_tries(project, approved, experiment.id, reference)
    ]
    theirs = (
        []
        if reference is None
        else recorded_evaluations(project, reference, approved, Split.VALIDATION)
    )
    behind = left_behind(project, approved, experiment.id)
    return [reference, approved.version, identities(own), identities(theirs), tries, behind]


def identities(evaluations: Sequence[Evaluation]) -> list[Any]:
    """What says that evaluations are the same, of recorded ones: of a sealed one its keyed name
    stands for the value."""
    return [
        [one.run, one.seed, one.checkpoint, one.predictions, one.sealed or one.value, one.baseline]
        for one in evaluations
    ]
