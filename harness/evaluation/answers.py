"""The code of the next answer about a sealed split: which words there are, and how long each is."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.domain.records import Experiment, Objective
from harness.domain.statuses import Split, Tier
from harness.evaluation.carry_over import CARRY_OVER
from harness.evaluation.ladder import (
    FAILED_BITS,
    FARTHEST,
    MOST_STEPS,
    PLAIN_BITS,
    SCORED_BITS,
    Answer,
    Bound,
    Told,
    around,
    better_or_not,
    cell_of,
    choice_bits,
    ladder,
    possible_tiers,
    rare_bits,
    spread,
    step_of,
    tier_bits,
    value_of,
)
from harness.evaluation.released import digest, released_score
from harness.evaluation.scoring import scorer_of
from harness.ledger.facts import ApprovedPlan
from harness.ledger.project import Project
from harness.plans.approved import objective_of

PLAIN = 0
"""Steps that are told: better or not, and no number."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What decides the code of the next answer; all of it was told, or depends on no label."""

    objective: Objective
    split: Split
    rows: int
    step: float
    grid: str
    best: int | None
    """On validation: the best cell that was told."""
    centre: int
    expected: bool = False
    """Whether `centre` was told of this experiment: then a number near it is likely."""

    @property
    def most(self) -> int:
        """How many steps can be told when bits are plenty."""
        return MOST_STEPS if self.best is not None else FARTHEST

    def value(self, cell: int) -> float:
        return value_of(cell, self.step, self.objective.direction)

    def told(self, cell: int, limit: int) -> Told:
        """The answer to a score in `cell` with the code of `limit`."""
        if limit < 0:
            return Told(answer=Answer.TIER_ONLY, cell=None, bits=SCORED_BITS)
        if self.best is not None:
            return ladder(cell, self.best, limit)
        return (around if self.expected else spread)(cell, self.centre, limit)

    def tiers(self, told: Told) -> list[Tier | None]:
        """Those that the score can have after `told`; the first is the likely one."""
        cell, objective = told.cell, self.objective
        if cell is not None and told.bound is Bound.AT_MOST:
            # Below the number the tier may be any lower one: it is told, or a gate would pass what
            # does not reach it.
            likely, possible = (
                objective.tier(self.value(cell)),
                possible_tiers(objective, None, self.value(cell)),
            )
            return [likely, *(tier for tier in possible if tier is not likely)]
        if cell is not None:
            # A score above "at least" has the tier of the number that is told, or a higher one.
            high = cell if told.bound is not None else cell + 1
            return possible_tiers(objective, self.value(cell), self.value(high))
        if told.answer is Answer.NOT_BETTER and self.best is not None:
            likely = objective.tier(self.value(self.best))
            possible = possible_tiers(objective, None, self.value(self.best + 1))
        else:
            likely = objective.tier(self.value(self.centre))
            possible = possible_tiers(objective, None, None)
        return [likely, *(tier for tier in possible if tier is not likely)]


@dataclass(frozen=True, kw_only=True)
class Word:
    """One whole answer."""

    told: Told
    tier: Tier | None
    better: bool | None
    bits: float
    coarse: bool = False
    """Whether the bits that are left reached for less than there was to tell."""


def word_for(
    frame: Frame,
    mean: float | None,
    *,
    left: float,
    better: bool | None,
    code: str | None,
    reserve: float = 0.0,
) -> Word | None:
    """The answer to a score in at most `left` bits, of which `reserve` stays for other experiments
    where the code allows it; None when the dearest one does not fit. `mean` None is a look whose
    labels gave no score; `better` is the comparison on validation, `code` what held-out says of a
    gain."""
    codes = list(limits(frame))
    limit = next((most for most, bits in codes if bits <= left - reserve), codes[-1][0])
    if dict(codes)[limit] > left:
        return None
    if limit == PLAIN:
        return _plain_word(frame, mean, better)
    if mean is None:
        failed = Told(answer=Answer.FAILED, cell=None, bits=FAILED_BITS + 1)
        return Word(told=failed, tier=None, better=None, bits=failed.bits)
    told = frame.told(cell_of(mean, frame.step, frame.objective.direction), limit)
    tiers, reached = frame.tiers(told), frame.objective.tier(mean)
    short = limit < frame.most and (told.bound is not None or told.answer is Answer.TIER_ONLY)
    # Sums of floats fall a hair below a threshold on the grid: what was told before decides.
    tier = reached if reached in tiers else tiers[0]
    bits = told.bits + tier_bits(tiers.index(tier), len(tiers))
    if frame.split is Split.HELD_OUT:
        bits += code_bits(code)
        return Word(told=told, tier=tier, better=None, bits=bits, coarse=short)
    if better is not None and told.answer is not Answer.NOT_BETTER:
        return Word(told=told, tier=tier, better=better, bits=bits + 1, coarse=short)
    no_better = None if better is None else False
    return Word(told=told, tier=tier, better=no_better, bits=bits, coarse=short)


def _plain_word(frame: Frame, mean: float | None, better: bool | None) -> Word:
    """Better or not, and no number. Which other tier a score has that is not better, and why there
    is no score, are rare words."""
    assert frame.best is not None
    cell = None if mean is None else cell_of(mean, frame.step, frame.objective.direction)
    told = better_or_not(cell or 0, frame.best, doubted=better is False)
    if mean is None:
        failed = Told(answer=Answer.FAILED, cell=None, bits=rare_bits(_rare_words(frame)))
        return Word(told=failed, tier=None, better=None, bits=failed.bits)
    if told.cell is not None:
        tier = frame.objective.tier(frame.value(told.cell))
        return Word(told=told, tier=tier, better=better, bits=told.bits, coarse=True)
    tiers, reached = frame.tiers(told), frame.objective.tier(mean)
    tier = reached if reached in tiers else tiers[0]
    bits = told.bits if tier is tiers[0] else rare_bits(_rare_words(frame))
    no_better = None if better is None else False
    return Word(told=told, tier=tier, better=no_better, bits=bits)


def _rare_words(frame: Frame) -> int:
    """Two reasons for no score, and the tiers that are not the likely one."""
    not_better = Told(answer=Answer.NOT_BETTER, cell=None, bits=0.0)
    return 2 + len(frame.tiers(not_better)) - 1


def code_bits(code: str | None) -> float:
    """Of what held-out says of a gain; None, that it holds, is the usual word."""
    return choice_bits(0 if code is None else 1 + CARRY_OVER.index(code), 1 + len(CARRY_OVER))


def limits(frame: Frame) -> Iterator[tuple[int, float]]:
    """How many steps may be told, the most first, each with its dearest answer; no number is
    `PLAIN` on validation, once a number was told, and -1, the tier alone, on held-out."""
    most = frame.most
    while most > 0:
        yield most, _dearest(frame, most)
        most //= 2
    if frame.split is Split.HELD_OUT:
        yield -1, _dearest(frame, -1)
    elif frame.best is not None:
        yield PLAIN, max(PLAIN_BITS, rare_bits(_rare_words(frame)))


def _dearest(frame: Frame, limit: int) -> float:
    centre = frame.best if frame.best is not None else frame.centre
    reach = max(limit, 0) + 1
    # The length rises with the distance, but for the tier, which is open near a threshold only.
    cells = {centre, *(centre + sign * (reach + by) for sign in (-1, 1) for by in (-1, 0))}
    for threshold in frame.objective.tiers.values():
        at = cell_of(threshold, frame.step, frame.objective.direction)
        cells |= {cell for cell in (at - 1, at, at + 1) if abs(cell - centre) <= reach}
    words = {frame.told(cell, limit) for cell in cells}
    longest = max(
        told.bits
        + max(tier_bits(place, len(frame.tiers(told))) for place in (0, 1))
        + _most_flags(frame, told)
        for told in words
    )
    return max(longest, FAILED_BITS + 1)


def _most_flags(frame: Frame, told: Told) -> float:
    if frame.split is Split.HELD_OUT:
        return code_bits(CARRY_OVER[0])
    return 0.0 if told.answer is Answer.NOT_BETTER else 1.0


def frame_of(project: Project, record: Experiment, approved: ApprovedPlan, split: Split) -> Frame:
    objective, entry = objective_of(approved), approved.splits[split.value]
    given = approved.content["oracle"].get("step")
    step = given or step_of(objective.tiers, objective.direction, entry["rows"])
    grid = digest([split, entry["sha256"], scorer_of(approved).hash(), step, objective.metric])
    best = (
        project.ledger.best_told(approved.name, grid, split) if split is Split.VALIDATION else None
    )
    centre, told = _centre(project, record, approved, split, step)
    return Frame(
        objective=objective,
        split=split,
        rows=entry["rows"],
        step=step,
        grid=grid,
        best=best,
        centre=centre,
        expected=told,
    )


def _centre(
    project: Project, record: Experiment, approved: ApprovedPlan, split: Split, step: float
) -> tuple[int, bool]:
    """Where a score is expected: on held-out where validation was, else at the lowest tier; and
    whether it is the former."""
    objective = objective_of(approved)
    expected: float | None = None
    if split is Split.HELD_OUT:
        told = released_score(project, record.id, approved, Split.VALIDATION)
        expected = None if told is None else told["mean"]
    known = expected is not None
    if expected is None:
        expected = next((objective.tiers[tier] for tier in Tier if tier in objective.tiers), 0.0)
    return cell_of(expected, step, objective.direction), known
