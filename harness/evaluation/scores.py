"""Which recorded evaluations are an experiment's score, and how it compares with its parent's."""

from collections.abc import Sequence
from typing import Any

from harness.domain.records import ApprovedPlan, Evaluation, Experiment, Objective, Run
from harness.domain.statuses import Split
from harness.errors import RefusedError
from harness.evaluation.judgement import TRIVIAL, Earlier, judge, p_of
from harness.evaluation.noise_floor import Comparison, compare, compare_to_baseline
from harness.evaluation.paired import Paired
from harness.evaluation.paired_rows import paired
from harness.evaluation.score import Score, row_noise, summarise
from harness.gates.evidence import counted_runs
from harness.ledger.project import Project
from harness.plans.plan import plan_from


def plan_of(project: Project, experiment: Experiment) -> ApprovedPlan:
    """The newest version of the plan that the experiment was opened under. Raises RefusedError when
    there is none."""
    versions = [plan for plan in project.ledger.plans() if plan.name == experiment.plan]
    if not versions:
        raise RefusedError(
            f"{experiment.id} was opened without an approved plan, so nothing says how to"
            " judge it.",
            hint=(
                "A person approves a plan with `harness plan approve plan.md`; then open a new"
                " experiment."
            ),
            code="no_plan",
        )
    return versions[-1]


def objective_of(approved: ApprovedPlan) -> Objective:
    return plan_from(approved.content).objective()


def counted_evaluations(
    project: Project,
    experiment: str,
    approved: ApprovedPlan,
    split: Split,
    runs: Sequence[Run] | None = None,
) -> list[Evaluation]:
    """One evaluation a counted run: the newest of its final checkpoint under the plan version in
    force."""
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


def compared(
    project: Project, experiment: Experiment, approved: ApprovedPlan
) -> dict[str, Any] | None:
    """{against, split, difference, floor, better, why, p, p_corrected, comparisons, no_longer,
    paired, seeds} on validation, where experiments compete; None without a score.

    Against the parent, when it was scored under the same version of the plan, else the trivial
    predictor. Corrected for the plan's tries compared with the same reference so far: its earlier
    experiments, and code or commands that an experiment left behind after their score was seen.
    Later ones change no verdict, and say which earlier ones would no longer be better among all of
    them.
    """
    reference = _reference(project, experiment, approved)
    if reference is None and _scored_before(project, experiment):
        own = summarise(counted_evaluations(project, experiment.id, approved, Split.VALIDATION))
        return None if own is None else _without_reference(experiment.parent, approved, own.n_seeds)
    found = judged(project, approved, experiment.id, reference)
    if found is None:
        return None
    return {"against": reference or TRIVIAL, "split": Split.VALIDATION.value, **found}


def _scored_before(project: Project, experiment: Experiment) -> bool:
    """Whether the experiment has a parent with a score, under whatever version of the plan."""
    if experiment.parent is None:
        return False
    return any(
        item.value is not None
        for item in project.ledger.evaluations(experiment.parent, Split.VALIDATION)
    )


def _without_reference(parent: str | None, approved: ApprovedPlan, seeds: int) -> dict[str, Any]:
    """A parent that was scored under another version only: nothing else may stand in for it."""
    why = f"Inconclusive: {parent} has no score under version {approved.version} of the plan."
    known = {
        "difference": None,
        "floor": None,
        "better": None,
        "why": why,
        "p": None,
        "p_corrected": None,
    }
    split = Split.VALIDATION.value
    none = {"comparisons": 0, "no_longer": [], "paired": None}
    return {"against": parent, "split": split, **known, **none, "seeds": [seeds, 0]}


def judged(
    project: Project, approved: ApprovedPlan, candidate: str, reference: str | None
) -> dict[str, Any] | None:
    """A Judgement as plain data, and `seeds` [candidate's, reference's or None]; None when one has
    no score.

    `reference` None is the trivial predictor.
    """
    sides = _compare(project, approved, candidate, reference)
    if sides is None:
        return None
    result, rows, counts = sides
    objective = objective_of(approved)
    found = judge(result, rows, _earlier(project, approved, candidate, reference), objective)
    return {**found.plain(), "seeds": counts}


def _compare(
    project: Project, approved: ApprovedPlan, candidate: str, reference: str | None
) -> tuple[Comparison, Paired | None, list[int | None]] | None:
    mine = counted_evaluations(project, candidate, approved, Split.VALIDATION)
    own, objective = summarise(mine), objective_of(approved)
    if own is None:
        return None
    if reference is None:
        if own.baseline is None:
            return None
        rows = paired(project, approved, mine, None)
        noise = row_noise(own) if rows is None else rows.half_width
        found = compare_to_baseline(
            own.values, own.baseline, objective, row_noise=noise, paired=rows is not None
        )
        return found, rows, [own.n_seeds, None]
    theirs = counted_evaluations(project, reference, approved, Split.VALIDATION)
    other = summarise(theirs)
    if other is None:
        return None
    rows = paired(project, approved, mine, theirs)
    noise = row_noise(own, other) if rows is None else rows.half_width
    found = compare(own.values, other.values, objective, row_noise=noise, paired=rows is not None)
    return found, rows, [own.n_seeds, other.n_seeds]


def _reference(project: Project, experiment: Experiment, approved: ApprovedPlan) -> str | None:
    """The parent, when it was scored under this version of the plan."""
    if experiment.parent is None:
        return None
    scored = summarise(counted_evaluations(project, experiment.parent, approved, Split.VALIDATION))
    return experiment.parent if scored is not None else None


def _earlier(
    project: Project, approved: ApprovedPlan, candidate: str, reference: str | None
) -> list[Earlier]:
    """The plan's tries before `candidate` as it is now that were compared with the same reference,
    oldest first."""
    objective = objective_of(approved)
    found: list[Earlier] = []
    number = project.ledger.experiment(candidate).number
    for item in sorted(project.ledger.experiments(), key=lambda item: item.number):
        if item.plan != approved.name or item.number >= number or item.id == reference:
            continue
        if _reference(project, item, approved) != reference or (
            reference is None and _scored_before(project, item)
        ):
            continue
        found += _left_behind(project, approved, item.id)
        sides = _compare(project, approved, item.id, reference)
        if sides is None or p_of(sides[0], sides[1], objective) is None:
            continue
        made = judge(sides[0], sides[1], found, objective)
        assert made.p is not None
        found.append(Earlier(experiment=item.id, p=made.p, better=made.better is True))
    return found + _left_behind(project, approved, candidate)


def _left_behind(project: Project, approved: ApprovedPlan, experiment: str) -> list[Earlier]:
    """One try for each code and command that was scored on validation before the experiment went on
    with another: who looks, edits and looks again has chosen by validation. Each is taken to have
    found nothing (p = 1), which corrects the others no less than its own p would."""
    runs = project.ledger.runs(experiment)
    seen = {
        item.run
        for item in project.ledger.evaluations(experiment, Split.VALIDATION)
        if item.value is not None and item.plan_version == approved.version
    }
    last = {(run.code, tuple(run.argv)): run.id for run in runs if run.id in seen}
    if runs:
        last.pop((runs[-1].code, tuple(runs[-1].argv)), None)
    return [Earlier(experiment=f"{experiment}/{run}", p=1.0, better=False) for run in last.values()]
