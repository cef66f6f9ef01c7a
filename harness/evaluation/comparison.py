"""One experiment against its reference: by seeds, by rows, and by how many comparisons were made.

Better needs both: a difference beyond the seeds' noise floor, and, where rows are known, a
significant paired test over rows. The larger of the two p-values tests both at once (Berger,
"Multiparameter hypothesis testing and acceptance sampling", 1982: the intersection-union test).

The more is compared with one reference, the likelier one try is lucky. The level is spent in the
order of the tries (alpha spending; Foster and Stine, "Alpha-investing", 2008): the p of the k-th is
multiplied by k ** SPENDING. All the shares 1 / k ** SPENDING together are less than 2, so that with
one-sided errors of LEVEL / 2 the chance that a plan ever keeps what is no better is at most LEVEL,
however many tries it has and whatever their dependence. Holm's step-down procedure ("A simple
sequentially rejective multiple test procedure", 1979) tells which earlier ones stand out among all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.domain.records import LEAST_SEEDS, Experiment, Objective
from harness.domain.statuses import Direction, Split
from harness.evaluation.noise_floor import (
    Pairing,
    SeedComparison,
    compare,
    compare_to_baseline,
)
from harness.evaluation.outcome import (
    HIDDEN_LABELS,
    LEVEL,
    READABLE_LABELS,
    TRIVIAL,
    FloorOf,
    Inconclusive,
    Worth,
)
from harness.evaluation.paired import Paired, paired
from harness.evaluation.released import latest_release
from harness.evaluation.scores import counted_evaluations, row_noise, summarise
from harness.evaluation.trained_libraries import trained_otherwise
from harness.evaluation.tries import Standings, earlier_tries, left_behind
from harness.ledger.facts import ApprovedPlan, Evaluation
from harness.ledger.project import Project
from harness.plans.approved import objective_of, secret

SPENDING = 1.73
"""zeta(1.73) = 1.997."""


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """A comparison that was made with the same reference before."""

    experiment: str
    """Its id; of code or a command that an experiment left behind, its last run, e.g.
    "exp-0001/run-03"."""
    p: float
    better: bool
    """What its own verdict said, corrected for those before it."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    difference: float
    """Candidate minus reference, in the metric's unit, whatever the direction."""
    direction: Direction
    floor: float | None
    floor_of: FloorOf
    by_seeds: Worth
    """The outcome before rows and corrections."""
    inconclusive: Inconclusive | None
    better: bool | None
    """The outcome after them; None when it cannot be said."""
    p: float | None
    """Two-sided, of seeds and rows together; None when nothing can be said."""
    p_corrected: float | None
    comparisons: int
    """With this reference, this one included."""
    no_longer: Mapping[str, float]
    """Earlier experiments that were better when they were judged and are not significant among all
    of these -> their corrected p."""
    paired: Paired | None
    least_seeds: int = LEAST_SEEDS

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "no_longer": dict(self.no_longer)}


def holm(p_values: Sequence[float]) -> list[float]:
    """The corrected p-values, in the given order. Raises ValueError for one outside [0, 1]."""
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError(f"p-values lie in [0, 1], got {list(p_values)}")
    corrected, least = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        # The i-th smallest of m is multiplied by m - i + 1. The running maximum keeps the order: a
        # larger p must not be corrected to less than a smaller one.
        least = max(least, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = least
    return corrected


def joint_p(seeds: SeedComparison, rows: Paired | None, objective: Objective) -> float | None:
    """The p-value of "better or worse, by seeds and by rows"; None when the seeds cannot say."""
    if seeds.p is None or rows is None:
        return seeds.p
    # Both are two-sided: two tests that are significant in opposite directions say nothing.
    agree = objective.gain(rows.gain, 0.0) * objective.gain(seeds.difference, 0.0) > 0
    return max(seeds.p, rows.p) if agree else 1.0


def combine(
    seeds: SeedComparison, rows: Paired | None, earlier: Sequence[Earlier], objective: Objective
) -> Comparison:
    """`earlier`: oldest first."""
    p = joint_p(seeds, rows, objective)
    corrected = [] if p is None else holm([*(try_.p for try_ in earlier), p])
    own = None if p is None else min(1.0, p * (len(earlier) + 1) ** SPENDING)
    better = seeds.better
    if better and own is not None:
        better = own <= LEVEL
    now = dict(zip([try_.experiment for try_ in earlier], corrected, strict=False))
    no_longer = {
        try_.experiment: now[try_.experiment]
        for try_ in earlier
        if try_.better and now.get(try_.experiment, 0) > LEVEL
    }
    return Comparison(
        difference=seeds.difference,
        direction=objective.direction,
        floor=seeds.floor,
        floor_of=seeds.floor_of,
        by_seeds=seeds.outcome,
        inconclusive=seeds.inconclusive,
        better=better,
        p=p,
        p_corrected=own,
        comparisons=len(earlier) + 1,
        no_longer=no_longer,
        paired=rows,
    )


def compared(
    project: Project, experiment: Experiment, approved: ApprovedPlan
) -> dict[str, Any] | None:
    """`Comparison.plain`, `against`, `split` and `seeds` on validation; None without a score.

    Against the best of its line of parents and of what was kept before it in this comparison,
    else the trivial predictor (`tries.Standings`). `parent`: what is said of a parent that is
    not that; `kept_not_scored`: what was kept and has no score in this comparison. Corrected for
    the tries so far: earlier experiments, and code or commands that an experiment left behind after
    their score was seen.
    """
    standings = Standings(project, approved)
    if standings.not_comparable(experiment):
        own = summarise(counted_evaluations(project, experiment.id, approved, Split.VALIDATION))
        return (
            None if own is None else _without_reference(experiment.parent, approved, own.n_seeds)
        )
    reference = standings.reference(experiment)
    comparison = compare_experiments(project, approved, experiment.id, reference)
    if comparison is None:
        return None
    found = {"against": reference or TRIVIAL, "split": Split.VALIDATION.value, **comparison}
    if experiment.parent not in (None, reference):
        found["parent"] = _beside(project, approved, experiment, standings)
    unknown = [name for name in standings.kept_before(experiment) if not standings.scored(name)]
    if unknown:
        found |= {"kept_not_scored": unknown, "plan_version": approved.comparison}
    return found


def _beside(
    project: Project, approved: ApprovedPlan, experiment: Experiment, standings: Standings
) -> dict[str, Any]:
    """The comparison with a parent that is not the reference: shown, and nothing rests on it."""
    parent = experiment.parent
    assert parent is not None
    named: dict[str, Any] = {"against": parent, "scored": standings.scored(parent)}
    if not named["scored"] or secret(approved, Split.VALIDATION.value):
        return named  # of hidden labels one answer is told
    sides = _compare(project, approved, experiment.id, parent)
    if sides is None:
        return named
    alone = combine(sides[0], sides[1], (), objective_of(approved))
    return named | {"difference": alone.difference, "better": alone.better, "p": alone.p}


def _without_reference(parent: str | None, approved: ApprovedPlan, seeds: int) -> dict[str, Any]:
    """A parent that was scored in another comparison only."""
    # The trivial predictor is no substitute: almost anything beats it.
    numbers = ("difference", "floor", "better", "p", "p_corrected", "paired")
    return {
        "against": parent,
        "split": Split.VALIDATION.value,
        "inconclusive": Inconclusive.REFERENCE_NOT_SCORED.value,
        "plan_version": approved.comparison,
        **dict.fromkeys(numbers),
        "comparisons": 0,
        "no_longer": {},
        "seeds": [seeds, 0],
    }


def compare_experiments(
    project: Project, approved: ApprovedPlan, candidate: str, reference: str | None
) -> dict[str, Any] | None:
    """`Comparison.plain` and `seeds` [candidate's, reference's or None]; None when one has no
    score. `reference` None is the trivial predictor. `libraries`: those in which their trainings
    differ, where some do."""
    sides = _compare(project, approved, candidate, reference)
    if sides is None:
        return None
    result, rows, counts = sides
    earlier = _earlier(project, approved, candidate, reference)
    found = {**combine(result, rows, earlier, objective_of(approved)).plain(), "seeds": counts}
    other = [] if reference is None else trained_otherwise(project, candidate, reference)
    return found | {"libraries": other} if other else found


def is_better(
    project: Project, approved: ApprovedPlan, candidate: str, reference: str | None
) -> bool | None:
    """By seeds in pairs and by rows, as a gate compares, but as a first try: for an order of
    experiments that were compared with others. None when it cannot be said."""
    sides = _compare(project, approved, candidate, reference)
    if sides is None:
        return None
    return combine(sides[0], sides[1], [], objective_of(approved)).better


def _compare(
    project: Project, approved: ApprovedPlan, candidate: str, reference: str | None
) -> tuple[SeedComparison, Paired | None, list[int | None]] | None:
    mine = counted_evaluations(project, candidate, approved, Split.VALIDATION)
    own, objective = summarise(mine), objective_of(approved)
    if own is None:
        return None
    if reference is None:
        if own.baseline is None:
            return None
        rows = paired(project, approved, mine, None)
        noise = row_noise(own) if rows is None else rows.half_width
        by_seeds = compare_to_baseline(
            own.values, own.baseline, objective, row_noise=noise, paired=rows is not None
        )
        return by_seeds, rows, [own.n_seeds, None]
    theirs = counted_evaluations(project, reference, approved, Split.VALIDATION)
    other = summarise(theirs)
    if other is None:
        return None
    rows = paired(project, approved, mine, theirs)
    noise = row_noise(own, other) if rows is None else rows.half_width
    by_seeds = compare(
        own.values,
        other.values,
        objective,
        row_noise=noise,
        paired=rows is not None,
        pairing=pairing_of(mine, theirs),
    )
    return by_seeds, rows, [own.n_seeds, other.n_seeds]


def pairing_of(own: Sequence[Evaluation], other: Sequence[Evaluation]) -> Pairing:
    """What the scores of two experiments have in common, seed by seed."""
    mine, theirs = (
        {one.seed: one.checkpoint for one in some if one.value is not None}
        for some in (own, other)
    )
    if mine.keys() != theirs.keys():
        return Pairing.NONE
    return Pairing.WEIGHTS if mine == theirs else Pairing.SEEDS


def _earlier(
    project: Project, approved: ApprovedPlan, candidate: str, reference: str | None
) -> list[Earlier]:
    """The comparisons that were made before `candidate`'s present one, oldest first."""
    objective = objective_of(approved)
    comparisons: list[Earlier] = []
    for experiment in earlier_tries(project, approved, candidate, reference):
        comparisons += _without_effect(project, approved, experiment.id)
        sides = _compare(project, approved, experiment.id, reference)
        if sides is None or joint_p(sides[0], sides[1], objective) is None:
            continue
        made = combine(sides[0], sides[1], comparisons, objective)
        assert made.p is not None
        comparisons.append(Earlier(experiment=experiment.id, p=made.p, better=made.better is True))
    return comparisons + _without_effect(project, approved, candidate)


def _without_effect(project: Project, approved: ApprovedPlan, experiment: str) -> list[Earlier]:
    """Code and commands that the experiment left behind."""
    # p = 1, whatever they found: a p of their own would not correct the others more.
    return [
        Earlier(experiment=f"{experiment}/{run}", p=1.0, better=False)
        for run in left_behind(project, approved, experiment)
    ]


def released_comparison(
    project: Project, experiment: Experiment, approved: ApprovedPlan
) -> dict[str, Any] | None:
    """The comparison on validation as everybody may see it: of hidden labels better or not, and no
    number. None without a score."""
    if not secret(approved, Split.VALIDATION.value):
        comparison = compared(project, experiment, approved)
        return None if comparison is None else {**comparison, "labels": READABLE_LABELS}
    told = latest_release(project, experiment.id, approved, Split.VALIDATION)
    if told is None or told.comparison is None:
        return None
    numbers = ("difference", "floor", "p", "p_corrected", "paired")
    return {
        "split": Split.VALIDATION.value,
        **dict.fromkeys(numbers),
        "no_longer": {},
        **told.comparison,
        "better": told.better,
        "labels": HIDDEN_LABELS,
        "answer": told.answer,
        "step": told.step,
        "best": told.best,
    }
