"""What a look at secret labels answers: a grid, the Ladder, and the code length of each answer.

Exact scores are a channel: six looks at scores with sixteen digits carry a whole table of labels.
The Ladder (Blum and Hardt, "The Ladder: a reliable leaderboard for machine learning competitions",
2015) answers a score only when it beats the best one that was told by a step, and rounds it to the
step; else it says "not better".

Every answer is a word of a prefix code that what was told before decides. By Kraft's inequality at
most 2^B transcripts of answers cost B bits together or less, so that nobody, whatever is encoded in
the predictions, can decode more than B bits from them.

Scores are counted in steps here, upwards being better whatever the metric's direction.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

from harness.domain.late import Late, dataclass
from harness.domain.records import Objective
from harness.domain.statuses import Direction, Tier

FAILED_BITS = 4.0
"""1 look in 16 is said to have no score; which of two reasons is a bit more."""
_FAILED = 1 / 16
_BETTER = 1 / 8
NOT_BETTER_BITS = math.log2(1 / (1 - _FAILED - _BETTER))
BETTER_BITS = math.log2(1 / _BETTER)
SCORED_BITS = math.log2(1 / (1 - _FAILED))
"""Where a look answers a number whatever it is: the first one, and those on held-out."""
PLAIN_BITS = math.log2(8 / 3)
"""Of "better" and of "not better" alone, where the bits are to reach for more experiments."""
PLAIN_FAILED_BITS = math.log2(14)
"""Of each of two reasons for no score there."""
PLAIN_OTHER_BITS = math.log2(28 / 3)
"""And of "not better" on the unlikely side of the lowest tier: what is left."""
TIER_ALONE_BITS = 1.0
"""On held-out without a number: the likely tier, and that a gain holds."""
MOST_STEPS = 63
"""An improvement by more is told as "at least"."""
FARTHEST = 31
"""Steps from the centre, up or down, beyond which a number is told as "at least" or "at most"."""
SAME_BITS = math.log2(4 / 3)
"""Of an experiment that was told before: what was told is still true."""
OTHER_BITS = math.log2(4)
"""And before each other word, where it is not."""
_LIKELY = 7 / 8
_USUAL = 3 / 4


class Answer(StrEnum):
    NOT_BETTER = "not better"
    BETTER = "better"
    SCORED = "scored"
    """A number, whatever was told before."""
    TIER_ONLY = "tier only"
    """The bits that are left do not reach for a number."""
    FAILED = "no score"


class Bound(StrEnum):
    AT_LEAST = "at least"
    AT_MOST = "at most"


@dataclass(frozen=True, kw_only=True)
class Told(Late):
    """One answer about a score, before tiers and comparisons."""

    answer: Answer
    cell: int | None
    """The score lies between `cell` and the next one, in steps; None when no number is told."""
    bound: Bound | None = None
    bits: float


def gamma_bits(k: int) -> float:
    """The length of k >= 1 in Elias's gamma code."""
    return 2.0 * (k.bit_length() - 1) + 1.0


def cell_of(score: float, step: float, direction: Direction) -> int:
    """The whole steps below `score`, counted upwards to the better."""
    upward = score if direction is Direction.MAXIMIZE else -score
    # A score on the grid must not fall below it by the rounding of a division.
    return math.floor(upward / step + 1e-9)


def value_of(cell: int, step: float, direction: Direction) -> float:
    """The number that is told for a cell, without the digits that floats add."""
    value = float(f"{cell * step:.12g}")
    return value if direction is Direction.MAXIMIZE else 0.0 - value


def step_of(tiers: Mapping[Tier, float], direction: Direction, rows: int) -> float:
    """About the standard error that a model at the lowest tier has on so many rows, as 1, 2 or 5
    times a power of ten. It depends on no label: a step made of them would tell something."""
    lowest = next((tiers[tier] for tier in Tier if tier in tiers), 0.5)
    share = 1 / max(2, rows)
    if direction is Direction.MAXIMIZE and 0 < lowest <= 1:
        inside = min(max(lowest, share), 1 - share)
        error = math.sqrt(inside * (1 - inside) / rows)
    else:
        error = (abs(lowest) or 1.0) / math.sqrt(rows)
    power = math.floor(math.log10(error))
    choices = [
        float(f"{digit}e{at}") for at in (power - 1, power, power + 1) for digit in (1, 2, 5)
    ]
    return min(choices, key=lambda choice: abs(math.log(choice / error)))


def ladder(cell: int, best: int, most: int = MOST_STEPS) -> Told:
    """The answer to a score in `cell` when the best that was told is in `best`. `most`: the largest
    number of steps that may be told, one less than a power of two."""
    steps = cell - best
    if steps < 1:
        return Told(answer=Answer.NOT_BETTER, cell=None, bits=NOT_BETTER_BITS)
    told = min(steps, most)
    return Told(
        answer=Answer.BETTER,
        cell=best + told,
        bound=Bound.AT_LEAST if steps > most else None,
        bits=BETTER_BITS + gamma_bits(told),
    )


def better_or_not(cell: int, best: int, *, doubted: bool) -> Told:
    """The two likely words where no number is told: better by a step at least and, as far as seeds
    and rows are compared, beyond doubt; or not."""
    if doubted or cell - best < 1:
        return Told(answer=Answer.NOT_BETTER, cell=None, bits=PLAIN_BITS)
    return Told(answer=Answer.BETTER, cell=best + 1, bound=Bound.AT_LEAST, bits=PLAIN_BITS)


def bits_for(experiments: int) -> float:
    """What is kept for so many that are still to be answered, the last one with its dearest
    word."""
    return 0.0 if experiments < 1 else PLAIN_BITS * (experiments - 1) + PLAIN_FAILED_BITS


def tier_alone_bits(words: int) -> float:
    """Of each of `words` others beside the likely one, which has half to itself."""
    return 1.0 + math.log2(words)


def spread(cell: int, centre: int, farthest: int = FARTHEST) -> Told:
    """A number where nothing says which is likely: all cost the same."""
    near = around(cell, centre, farthest)
    return replace(near, bits=SCORED_BITS + math.log2(2 * farthest + 1))


def around(cell: int, centre: int, farthest: int = FARTHEST) -> Told:
    """A number, cheap near `centre`: what was told before decides the centre."""
    offset = min(max(cell - centre, -farthest), farthest)
    bound = None
    if offset != cell - centre:
        bound = Bound.AT_LEAST if cell > centre else Bound.AT_MOST
    return Told(
        answer=Answer.SCORED,
        cell=centre + offset,
        bound=bound,
        bits=SCORED_BITS + gamma_bits(_zigzag(offset)),
    )


def choice_bits(place: int, choices: int) -> float:
    """Of one among several words, the first of which has three quarters to itself."""
    return math.log2(1 / _USUAL if place == 0 else (choices - 1) / (1 - _USUAL))


def tier_bits(place: int, possible: int) -> float:
    """Of the tier at `place` among those that are possible after what was told, the likely one
    first."""
    if possible < 2:
        return 0.0
    return math.log2(1 / _LIKELY if place == 0 else (possible - 1) / (1 - _LIKELY))


def possible_tiers(
    objective: Objective, low: float | None, high: float | None
) -> list[Tier | None]:
    """The tiers that a score between `low` and `high` can have, the worst first; None is without
    limit. `low` and `high` are values of the metric, `high` the better one."""
    worst = None if low is None else objective.tier(low)
    best = _highest(objective) if high is None else objective.tier(high)
    order: list[Tier | None] = [None, *(tier for tier in Tier if tier in objective.tiers)]
    return order[order.index(worst) : max(order.index(best), order.index(worst)) + 1]


def _highest(objective: Objective) -> Tier | None:
    return next((tier for tier in reversed(Tier) if tier in objective.tiers), None)


def _zigzag(offset: int) -> int:
    """0, 1, -1, 2, ... as 1, 2, 3, 4, ..."""
    return 2 * offset if offset > 0 else 1 - 2 * offset
