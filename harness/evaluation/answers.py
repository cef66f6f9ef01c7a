"""The code of the next answer about a sealed split: which words there are, and how long each is."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.domain.records import Experiment, Objective
from harness.domain.statuses import Split, Tier
from harness.evaluation.carry_over import CARRY_OVER
from harness.evaluation.ladder import (
    BETTER_BITS,
    FAILED_BITS,
    FARTHEST,
    MOST_STEPS,
    PLAIN_BITS,
    PLAIN_FAILED_BITS,
    PLAIN_OTHER_BITS,
    SCORED_BITS,
    TIER_ALONE_BITS,
    Answer,
    Bound,
    Told,
    around,
    better_or_not,
    cell_of,
    choice_bits,
    gamma_bits,
    ladder,
    possible_tiers,
    spread,
    step_of,
    tier_alone_bits,
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
TIER_ALONE = -1


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
    least = codes[-1][0]
    fitting = (most for most, bits in codes if bits <= left)
    limit = next((most for most in fitting if _usual(frame, most) <= left - reserve), least)
    if dict(codes)[limit] > left:
        return None
    if limit == PLAIN:
        return _plain_word(frame, mean, better)
    if limit == TIER_ALONE:
        return _tier_word(frame, mean, code)
    if mean is None:
        failed = Told(answer=Answer.FAILED, cell=None, bits=FAILED_BITS + 1)
        return Word(told=failed, tier=None, better=None, bits=failed.bits)
    told = frame.told(cell_of(mean, frame.step, frame.objective.direction), limit)
    tiers, reached = frame.tiers(told), frame.objective.tier(mean)
    short = limit < frame.most and told.bound is not None
    # Sums of floats fall a hair below a threshold on the grid: what was told before decides.
    tier = reached if reached in tiers else tiers[0]
    bits = told.bits + tier_bits(tiers.index(tier), len(tiers))
    if frame.split is Split.HELD_OUT:
        bits += code_bits(code)
        return Word(told=told, tier=tier, better=None, bits=bits, coarse=short)
    if better is not None and told.answer is not Answer.NOT_BETTER:
        bits += _better_bits(better)
        return Word(told=told, tier=tier, better=better, bits=bits, coarse=short)
    no_better = None if better is None else False
    return Word(told=told, tier=tier, better=no_better, bits=bits, coarse=short)


def _plain_word(frame: Frame, mean: float | None, better: bool | None) -> Word:
    """Better or not, and no number. Of one that is not better it is told whether it reaches the
    lowest tier: its tier is that one, or a higher one."""
    assert frame.best is not None
    if mean is None:
        failed = Told(answer=Answer.FAILED, cell=None, bits=PLAIN_FAILED_BITS)
        return Word(told=failed, tier=None, better=None, bits=failed.bits)
    objective = frame.objective
    cell = cell_of(mean, frame.step, objective.direction)
    told = better_or_not(cell, frame.best, doubted=better is False)
    if told.cell is not None:
        tier = objective.tier(frame.value(told.cell))
        return Word(told=told, tier=tier, better=better, bits=told.bits, coarse=True)
    reaches = objective.tier(mean) is not None
    likely = objective.tier(frame.value(frame.best)) is not None
    lowest = next((tier for tier in Tier if tier in objective.tiers), None)
    bits = told.bits if reaches is likely else PLAIN_OTHER_BITS
    no_better = None if better is None else False
    return Word(told=told, tier=lowest if reaches else None, better=no_better, bits=bits)


def _tier_word(frame: Frame, mean: float | None, code: str | None) -> Word:
    """The tier on held-out and what it says of a gain, as one word."""
    none = Told(answer=Answer.TIER_ONLY, cell=None, bits=TIER_ALONE_BITS)
    tiers = frame.tiers(none)
    rare = tier_alone_bits(_rare_words(tiers))
    if mean is None:
        failed = Told(answer=Answer.FAILED, cell=None, bits=rare)
        return Word(told=failed, tier=None, better=None, bits=rare)
    tier = frame.objective.tier(mean)
    bits = TIER_ALONE_BITS if tier is tiers[0] and code is None else rare
    return Word(told=none, tier=tier, better=None, bits=bits, coarse=True)


def _rare_words(tiers: list[Tier | None]) -> int:
    """All tiers with all codes but the likely word, and two reasons for no score."""
    return len(tiers) * (1 + len(CARRY_OVER)) - 1 + 2


def _better_bits(better: bool) -> float:
    """An experiment with a number is mostly better than its reference."""
    return choice_bits(0 if better else 1, 2)


def code_bits(code: str | None) -> float:
    """Of what held-out says of a gain; None, that it holds, is the usual word."""
    return choice_bits(0 if code is None else 1 + CARRY_OVER.index(code), 1 + len(CARRY_OVER))


def limits(frame: Frame) -> Iterator[tuple[int, float]]:
    """How many steps may be told, the most first, each with its dearest answer; no number is
    `PLAIN` on validation, once a number was told, and `TIER_ALONE` on held-out."""
    most = frame.most
    while most > 0:
        yield most, _dearest(frame, most)
        most //= 2
    if frame.split is Split.HELD_OUT:
        none = Told(answer=Answer.TIER_ONLY, cell=None, bits=TIER_ALONE_BITS)
        yield TIER_ALONE, tier_alone_bits(_rare_words(frame.tiers(none)))
    elif frame.best is not None:
        yield PLAIN, max(PLAIN_BITS, PLAIN_FAILED_BITS, PLAIN_OTHER_BITS)


def _usual(frame: Frame, limit: int) -> float:
    """What an improvement mostly costs: by so much the bits that are kept for others are left."""
    if limit == PLAIN:
        return PLAIN_BITS
    if limit == TIER_ALONE:
        return TIER_ALONE_BITS
    if frame.best is not None:
        number = BETTER_BITS + gamma_bits(1)
    elif frame.expected:
        number = SCORED_BITS + gamma_bits(3)
    else:
        number = spread(frame.centre, frame.centre, limit).bits
    more = code_bits(None) if frame.split is Split.HELD_OUT else _better_bits(True)
    return number + tier_bits(0, 2) + more


def _dearest(frame: Frame, limit: int) -> float:
    centre = frame.best if frame.best is not None else frame.centre
    reach = limit + 1
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
    return 0.0 if told.answer is Answer.NOT_BETTER else _better_bits(False)


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
