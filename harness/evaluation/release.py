"""What agents are told about a score on labels that nobody may read, and what it costs.

A look ends in one answer of the prefix code of `evaluation.ladder`. The plan's answers together
cost at most `oracle.bits`; a look whose dearest answer would pass that is refused before it is
taken. The verdict rests on the answer, so it tells nothing more: tier, better or not, and what
held-out says of the gain are words of the same code.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from harness.domain.records import Experiment
from harness.domain.statuses import Split, spoken
from harness.errors import RefusedError
from harness.evaluation.answers import Frame, Word, code_bits, frame_of, limits, word_for
from harness.evaluation.carry_over import OVERFITTED, carried_over
from harness.evaluation.comparison import compared
from harness.evaluation.ladder import (
    OTHER_BITS,
    SAME_BITS,
    Answer,
    Bound,
    bits_for,
    cell_of,
    value_of,
)
from harness.evaluation.outcome import more_bits
from harness.evaluation.released import (
    bits_limit,
    bits_told,
    digest,
    latest_release,
    plan_then,
    told_now,
)
from harness.evaluation.scores import (
    Score,
    counted_evaluations,
    recorded_evaluations,
    summarise,
)
from harness.evaluation.sealed import LABELLED
from harness.evaluation.tries import identities, reference_of
from harness.ledger.facts import ApprovedPlan, Evaluation, Release, ScoreReleased
from harness.ledger.project import Project
from harness.plans.approved import objective_of, secret


def to_release(project: Project, experiment: str, approved: ApprovedPlan, split: Split) -> bool:
    """Whether there is a score that was not told as it is now; of one that was told beside another
    reference only where the bits reach for comparing again."""
    last, changed = _last_and_changed(project, experiment, approved, split)
    if last is None or not changed or not told_now(project, experiment, approved, split):
        return changed
    return bits_told(project, approved) + _dearest_again(last) <= bits_limit(approved)


def beside_older(project: Project, experiment: str, approved: ApprovedPlan, split: Split) -> bool:
    """Whether the score was told beside a reference that changed since, and the bits that are left
    do not reach for comparing again: what was told stands."""
    last, changed = _last_and_changed(project, experiment, approved, split)
    return (
        last is not None
        and changed
        and told_now(project, experiment, approved, split)
        and not to_release(project, experiment, approved, split)
    )


def _last_and_changed(
    project: Project, experiment: str, approved: ApprovedPlan, split: Split
) -> tuple[Release | None, bool]:
    """What was told last, and whether there is a score that is not that any more."""
    if not secret(approved, split.value):
        return None, False
    record = project.ledger.experiment(experiment)
    now = _inputs(project, record, approved, split)
    last = latest_release(project, experiment, approved, split)
    return last, now is not None and (last is None or last.inputs != now)


def require_room(project: Project, experiment: str, approved: ApprovedPlan, split: Split) -> None:
    """Raises RefusedError (bits_spent) when the dearest answer of a look would pass the plan's
    bound."""
    least, left = _least_and_left(project, experiment, approved, split)
    if least <= left:
        return
    raise RefusedError(
        f"{experiment}: a look at {spoken(split)} could tell {least:.1f} bits about its labels, and"
        f" {max(left, 0):.1f} of the plan's {bits_limit(approved):g} are left.",
        hint=more_bits(approved.path, bits_limit(approved), experiment),
        code="bits_spent",
    )


def has_room(project: Project, experiment: str, approved: ApprovedPlan, split: Split) -> bool:
    least, left = _least_and_left(project, experiment, approved, split)
    return least <= left


def _least_and_left(
    project: Project, experiment: str, approved: ApprovedPlan, split: Split
) -> tuple[float, float]:
    """What a look can cost at the least resolution, and what is left of the plan's bound."""
    frame = frame_of(project, project.ledger.experiment(experiment), approved, split)
    left = bits_limit(approved) - bits_told(project, approved)
    last = latest_release(project, experiment, approved, split)
    more = OTHER_BITS if _told_of(last, frame) else 0.0
    return min(dearest for _, dearest in limits(frame)) + more, left


def release(project: Project, experiment: str, approved: ApprovedPlan, split: Split) -> None:
    """Tell what is known now about a sealed split; nothing when it was told, when there is no score
    or when the bits do not reach. What was told of the same evaluations stays: a reference that
    changed since costs the comparison alone."""
    if not to_release(project, experiment, approved, split):
        return
    record = project.ledger.experiment(experiment)
    exact = _exact(project, record, approved, split)
    if exact is None:
        return

    def make() -> ScoreReleased | None:
        # Under the write lock: what was told decides the code, and how much is left.
        frame = frame_of(project, record, approved, split)
        spent = bits_told(project, approved)
        last = latest_release(project, record.id, approved, split)
        limit = bits_limit(approved)
        if last is not None and last.of_own == exact.inputs.partition("/")[0]:
            return _compared_again(exact, last, spent, limit)
        if last is not None and _still_true(last, exact, frame):
            return _compared_again(exact, last, spent, limit, more=SAME_BITS)
        reserve = _reserve(project, record, approved)
        more = OTHER_BITS if _told_of(last, frame) else 0.0
        return _first_told(exact, frame, spent=spent, limit=limit, reserve=reserve, more=more)

    project.ledger.release_score(make)


@dataclass(frozen=True, kw_only=True)
class _Exact:
    """What is not told as it is."""

    experiment: str
    plan_version: int
    score: Score | None
    """None when a label decided that there is none: `codes` say why."""
    codes: tuple[str, ...]
    comparison: dict[str, Any] | None
    n_seeds: int
    not_isolated: list[str]
    inputs: str
    plan: Mapping[str, Any]


def _inputs(
    project: Project, record: Experiment, approved: ApprovedPlan, split: Split
) -> str | None:
    """Hash of the own evaluations, and of those that it is compared with; None without a score."""
    own = recorded_evaluations(project, record.id, approved, split)
    if not any(one.scored for one in own):
        return None
    other = reference_of(project, record, approved)
    theirs = [] if other is None else recorded_evaluations(project, other, approved, split)
    return f"{digest(identities(own))}/{digest([other, identities(theirs)])}"


def _exact(
    project: Project, record: Experiment, approved: ApprovedPlan, split: Split
) -> _Exact | None:
    own = counted_evaluations(project, record.id, approved, split)
    score, inputs = summarise(own), _inputs(project, record, approved, split)
    failed = sorted(_labelled(own))[:1]
    if inputs is None or (score is None and not failed):
        return None  # nothing to tell, or a clone without the vault
    # How many seeds failed would tell of the labels, and nobody counts it.
    told = None if failed else score
    comparison = None if failed else compared(project, record, approved)
    codes = tuple(failed)
    if split is Split.HELD_OUT and score is not None and not failed:
        before = summarise(counted_evaluations(project, record.id, approved, Split.VALIDATION))
        other = reference_of(project, record, approved)
        reference = (
            None
            if other is None
            else summarise(counted_evaluations(project, other, approved, split))
        )
        rows = {each: approved.splits[each.value]["rows"] for each in Split}
        goal = objective_of(approved)
        codes = carried_over(goal, before, score, comparison, reference, rows=rows)
    return _Exact(
        experiment=record.id,
        plan_version=approved.comparison,
        score=told,
        codes=codes,
        comparison=comparison if split is Split.VALIDATION else None,
        n_seeds=0 if told is None else told.n_seeds,
        not_isolated=[] if told is None else told.grade.codes,
        inputs=inputs,
        plan=plan_then(approved),
    )


def _labelled(evaluations: list[Evaluation]) -> set[str]:
    return {
        finding.code
        for one in evaluations
        if one.value is None
        for finding in one.findings
        if finding.code in LABELLED
    }


def _reserve(project: Project, record: Experiment, approved: ApprovedPlan) -> float:
    """Bits for the experiments that the plan still has room for: each is to have an answer on a
    hidden validation."""
    if not secret(approved, Split.VALIDATION.value):
        return 0.0
    answered = project.ledger.experiments_told(approved.name, Split.VALIDATION) - {record.id}
    experiments: int = approved.content["budget"]["experiments"]
    return bits_for(experiments - 1 - len(answered))


def _told_of(last: Release | None, frame: Frame) -> bool:
    """Whether a number, or that it is not better, was told of the experiment on this grid: its next
    answer may be that this is still true."""
    return (
        last is not None
        and last.grid == frame.grid
        and last.answer in (Answer.BETTER, Answer.SCORED, Answer.NOT_BETTER)
    )


def _still_true(last: Release, exact: _Exact, frame: Frame) -> bool:
    """Of a score that was trained or evaluated again: without this an experiment that does as well
    as before would be "not better" than its own answer."""
    if not _told_of(last, frame) or exact.score is None:
        return False
    objective = frame.objective
    cell = cell_of(exact.score.mean, frame.step, objective.direction)
    tier = objective.tier(exact.score.mean)
    bound = None if last.bound is None else _bound(Bound(last.bound), frame)
    if last.cell is None:
        best = None if last.best is None else cell_of(last.best, frame.step, objective.direction)
        return best is not None and cell <= best and tier is last.tier
    if bound is Bound.AT_LEAST:
        return cell >= last.cell
    same = cell <= last.cell if bound is Bound.AT_MOST else cell == last.cell
    return same and tier is last.tier


def _first_told(
    exact: _Exact,
    frame: Frame,
    *,
    spent: float,
    limit: float,
    reserve: float,
    more: float,
) -> ScoreReleased | None:
    conclusive = exact.comparison is not None and exact.comparison["better"] is not None
    word = word_for(
        frame,
        None if exact.score is None else exact.score.mean,
        left=limit - spent - more,
        reserve=reserve,
        better=bool(exact.comparison and exact.comparison["better"]) if conclusive else None,
        code=next(iter(exact.codes), None),
    )
    if word is None:
        return None
    return _fact(exact, frame, replace(word, bits=word.bits + more), spent=spent)


def _compared_again(
    exact: _Exact, last: Release, spent: float, limit: float, *, more: float = 0.0
) -> ScoreReleased | None:
    """The same evaluations, or others of which the same is true, beside a reference that may have
    changed; `more` bits say that it is so."""
    if spent + _dearest_again(last) + more > limit:
        return None
    number_told = _number_told(last)
    verdict = None if exact.comparison is None else exact.comparison["better"]
    asked = last.split is Split.VALIDATION and number_told and verdict is not None
    bits = 1.0 if asked else 0.0
    if last.split is Split.HELD_OUT and last.answer != Answer.FAILED:
        bits = code_bits(next(iter(exact.codes), None))
    bits += more
    fields = {name: value for name, value in last.body().items() if name != "at"}
    return ScoreReleased(
        **{
            **fields,
            "better": None if verdict is None else bool(verdict) and number_told,
            "comparison": _told_comparison(exact.comparison),
            "split": last.split.value,
            "tier": None if last.tier is None else last.tier.value,
            "codes": list(exact.codes if last.split is Split.HELD_OUT else last.codes),
            "inputs": exact.inputs,
            "plan": dict(exact.plan),
            "bits": bits,
            "spent": spent + bits,
        }
    )


def _number_told(last: Release) -> bool:
    return last.answer in (Answer.BETTER, Answer.SCORED)


def _dearest_again(last: Release) -> float:
    """The most bits that `_compared_again` costs."""
    if last.split is Split.HELD_OUT:
        return 0.0 if last.answer == Answer.FAILED else code_bits(OVERFITTED)
    return 1.0 if _number_told(last) else 0.0


def _fact(
    exact: _Exact,
    frame: Frame,
    word: Word,
    *,
    spent: float,
) -> ScoreReleased:
    told = word.told
    return ScoreReleased(
        experiment=exact.experiment,
        split=frame.split.value,
        plan_version=exact.plan_version,
        metric=frame.objective.metric,
        answer=told.answer.value,
        mean=None if told.cell is None else frame.value(told.cell),
        bound=None if told.bound is None else _bound(told.bound, frame).value,
        best=None if frame.best is None else frame.value(frame.best),
        coarse=word.coarse,
        step=frame.step,
        cell=told.cell,
        grid=frame.grid,
        tier=None if word.tier is None else word.tier.value,
        better=word.better,
        comparison=_told_comparison(exact.comparison),
        codes=list(exact.codes),
        n_seeds=exact.n_seeds,
        rows=frame.rows,
        not_isolated=exact.not_isolated,
        inputs=exact.inputs,
        bits=word.bits,
        spent=spent + word.bits,
        plan=dict(exact.plan),
    )


def _bound(bound: Bound, frame: Frame) -> Bound:
    """In the metric's own direction: cells count upwards to the better."""
    if value_of(1, frame.step, frame.objective.direction) > 0:
        return bound
    return Bound.AT_MOST if bound is Bound.AT_LEAST else Bound.AT_LEAST


def _told_comparison(comparison: dict[str, Any] | None) -> dict[str, Any] | None:
    """What no label decides."""
    if comparison is None:
        return None
    names: tuple[str, ...] = (
        "against",
        "comparisons",
        "seeds",
        "inconclusive",
        "plan_version",
        "libraries",
    )
    names += ("least_seeds", "parent", "kept_not_scored")
    return {name: comparison[name] for name in names if name in comparison}
