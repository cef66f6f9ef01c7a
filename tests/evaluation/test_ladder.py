"""What is told of scores on secret labels: the code is a prefix code, and the Ladder holds."""

import math
from collections import defaultdict
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from harness.domain.records import Objective
from harness.domain.statuses import Direction, Split, Tier
from harness.evaluation.answers import PLAIN, TIER_ALONE, Frame, limits, word_for
from harness.evaluation.carry_over import CARRY_OVER
from harness.evaluation.ladder import (
    BETTER_BITS,
    FAILED_BITS,
    FARTHEST,
    MOST_STEPS,
    NOT_BETTER_BITS,
    OTHER_BITS,
    SAME_BITS,
    Answer,
    Bound,
    around,
    better_or_not,
    cell_of,
    choice_bits,
    gamma_bits,
    ladder,
    possible_tiers,
    spread,
    step_of,
    tier_bits,
    value_of,
)

MAXIMIZE, MINIMIZE = Direction.MAXIMIZE, Direction.MINIMIZE
LIMITS = [2**power - 1 for power in range(1, 7)]


def kraft(lengths: list[float]) -> float:
    return sum(2.0**-length for length in lengths)


@pytest.mark.parametrize("most", LIMITS)
def test_the_answers_of_the_ladder_are_words_of_a_prefix_code(most: int) -> None:
    words = {ladder(cell, 40, most) for cell in range(40 - 5, 40 + most + 1)}
    assert kraft([word.bits for word in words] + [FAILED_BITS + 1] * 2) <= 1 + 1e-12


@pytest.mark.parametrize("farthest", [limit for limit in LIMITS if limit <= FARTHEST])
def test_the_numbers_around_a_centre_are_words_of_a_prefix_code(farthest: int) -> None:
    words = {around(cell, 40, farthest) for cell in range(40 - farthest, 40 + farthest + 1)}
    assert len(words) == 2 * farthest + 1
    assert kraft([word.bits for word in words] + [FAILED_BITS + 1] * 2) <= 1 + 1e-12


@pytest.mark.parametrize("farthest", [limit for limit in LIMITS if limit <= FARTHEST])
def test_the_numbers_of_a_first_look_are_words_of_a_prefix_code(farthest: int) -> None:
    words = {spread(cell, 40, farthest) for cell in range(40 - farthest, 40 + farthest + 1)}
    assert len({word.cell for word in words}) == 2 * farthest + 1
    assert kraft([word.bits for word in words] + [FAILED_BITS + 1] * 2) <= 1 + 1e-12


@pytest.mark.parametrize("tiers", [{"must": 0.8}, {"must": 0.8, "should": 0.9, "could": 0.95}])
def test_better_or_not_is_a_word_of_a_prefix_code(tiers: dict[str, float]) -> None:
    """All answers to all scores, with the two reasons for none."""
    frame = replace(
        held_out_frame(), split=Split.VALIDATION, best=48, objective=objective(MAXIMIZE, **tiers)
    )
    dear = dict(limits(frame))
    words = set()
    for score, better in product([None, *np.arange(0, 1.2, 0.005)], (True, False)):
        word = word_for(frame, score, left=dear[PLAIN], better=better, code=None)
        assert word is not None
        assert word.bits <= dear[PLAIN]
        words.add(word)
    failed = [word for word in words if word.told.answer is Answer.FAILED]
    assert kraft([word.bits for word in (*words, *failed)]) == pytest.approx(1)


@pytest.mark.parametrize("tiers", [{"must": 0.8}, {"must": 0.8, "should": 0.9, "could": 0.95}])
def test_a_tier_alone_is_a_word_of_a_prefix_code(tiers: dict[str, float]) -> None:
    """All tiers with all that held-out says of a gain, and the two reasons for no score."""
    frame = replace(held_out_frame(), objective=objective(MAXIMIZE, **tiers))
    dear = dict(limits(frame))[TIER_ALONE]
    words = []
    for score, code in product((None, 0.1, 0.85, 0.92, 0.97), (None, *CARRY_OVER)):
        word = word_for(frame, score, left=dear, better=None, code=code)
        assert word is not None
        assert word.bits <= dear
        words.append((word.told.answer, word.tier, code if score else None, word.bits))
    failed = [word for word in words if word[0] is Answer.FAILED]
    assert kraft([bits for *_, bits in (*set(words), failed[0])]) == pytest.approx(1)


def test_without_a_number_better_is_by_a_step_and_beyond_doubt() -> None:
    told = better_or_not(50, 40, doubted=False)
    assert (told.answer, told.cell, told.bound) == (Answer.BETTER, 41, Bound.AT_LEAST)
    assert better_or_not(50, 40, doubted=True).answer is Answer.NOT_BETTER
    assert better_or_not(40, 40, doubted=False).answer is Answer.NOT_BETTER


def test_tiers_and_flags_are_words_of_a_prefix_code() -> None:
    for possible in range(1, 5):
        assert kraft([tier_bits(place, possible) for place in range(possible)]) <= 1 + 1e-12
    assert kraft([choice_bits(place, 3) for place in range(3)]) <= 1 + 1e-12
    assert kraft([SAME_BITS, OTHER_BITS]) == pytest.approx(1)
    assert kraft([gamma_bits(k) for k in range(1, 2**16)]) <= 1


def test_the_lengths_are_those_of_the_documents() -> None:
    assert pytest.approx(math.log2(16 / 13)) == NOT_BETTER_BITS
    assert BETTER_BITS == 3
    assert [gamma_bits(k) for k in (1, 2, 3, 4, 63)] == [1, 3, 3, 5, 11]
    assert ladder(41, 40).bits == 4
    assert ladder(40, 40).answer is Answer.NOT_BETTER


def test_an_improvement_by_less_than_a_step_is_not_told() -> None:
    step = 0.02
    best = cell_of(0.86, step, MAXIMIZE)
    assert ladder(cell_of(0.8799, step, MAXIMIZE), best).answer is Answer.NOT_BETTER
    better = ladder(cell_of(0.8801, step, MAXIMIZE), best)
    assert (better.answer, better.cell) == (Answer.BETTER, 44)
    assert value_of(44, step, MAXIMIZE) == 0.88


def test_numbers_lie_on_the_grid_and_never_above_the_score() -> None:
    for step, direction in product((0.05, 0.02, 0.125, 0.001, 2.0, 50.0), (MAXIMIZE, MINIMIZE)):
        for score in np.random.default_rng(3).uniform(-40, 40, 200) * step:
            cell = cell_of(float(score), step, direction)
            told, after = (value_of(at, step, direction) for at in (cell, cell + 1))
            low, high = sorted((told, after))
            assert low - 1e-9 * step <= score <= high + 1e-9 * step
            assert cell_of(told, step, direction) == cell


def test_beyond_the_most_steps_a_bound_is_told() -> None:
    far = ladder(500, 40)
    assert (far.cell, far.bound) == (40 + MOST_STEPS, Bound.AT_LEAST)
    assert around(500, 40).bound is Bound.AT_LEAST
    assert around(-500, 40).bound is Bound.AT_MOST
    assert around(41, 40).bound is None


def test_the_step_is_about_a_standard_error_and_depends_on_no_label() -> None:
    assert step_of({Tier.MUST: 0.8}, MAXIMIZE, 1000) == 0.01  # 0.0126
    assert step_of({Tier.MUST: 0.8, Tier.COULD: 0.99}, MAXIMIZE, 100) == 0.05  # 0.04
    assert step_of({Tier.MUST: 1.0}, MAXIMIZE, 400) == 0.002  # 0.0025: no step is 0
    assert step_of({Tier.MUST: 0.05}, MINIMIZE, 1000) == 0.002  # 0.0016
    assert step_of({Tier.MUST: 30.0}, MINIMIZE, 25) == 5.0  # 6
    assert step_of({Tier.MUST: 0.0}, MINIMIZE, 100) == 0.1


def objective(direction: Direction, **tiers: float) -> Objective:
    given = {Tier(name): value for name, value in tiers.items()}
    return Objective(metric="m", direction=direction, tiers=given, seeds=3, queries=3)


def test_the_tiers_that_are_possible_after_a_number() -> None:
    up = objective(MAXIMIZE, must=0.8, could=0.95)
    assert possible_tiers(up, 0.82, 0.84) == [Tier.MUST]
    assert possible_tiers(up, 0.79, 0.81) == [None, Tier.MUST]
    assert possible_tiers(up, None, 0.9) == [None, Tier.MUST]
    assert possible_tiers(up, None, None) == [None, Tier.MUST, Tier.COULD]
    down = objective(MINIMIZE, must=0.5, should=0.1)
    assert possible_tiers(down, 0.6, 0.45) == [None, Tier.MUST]
    assert possible_tiers(down, 0.04, 0.02) == [Tier.SHOULD]


def held_out_frame() -> Frame:
    """Validation was told as 0.90, and a grid of 0.02."""
    return Frame(
        objective=objective(MAXIMIZE, must=0.8, should=0.9),
        split=Split.HELD_OUT,
        rows=400,
        step=0.02,
        grid="g",
        best=None,
        centre=45,
    )


def test_below_at_most_the_tier_is_the_scores_own_and_coarseness_is_told() -> None:
    """The number that is told is 0.88, above the tier; the score is not."""
    frame = held_out_frame()
    dear = dict(limits(frame))
    few = word_for(frame, 0.50, left=dear[1], better=None, code=None)
    assert few is not None
    assert (few.told.cell, few.told.bound, few.coarse) == (44, Bound.AT_MOST, True)
    assert few.tier is None
    assert few.bits <= dear[1]
    inside = word_for(frame, 0.85, left=dear[1], better=None, code=None)
    assert inside is not None
    assert (inside.told.bound, inside.tier) == (Bound.AT_MOST, Tier.MUST)
    plenty = word_for(frame, 0.85, left=dear[31], better=None, code=None)
    assert plenty is not None
    assert (plenty.told.cell, plenty.told.bound, plenty.coarse) == (42, None, False)
    none = word_for(frame, 0.85, left=dear[-1], better=None, code=None)
    assert none is not None
    assert (none.told.answer, none.coarse) == (Answer.TIER_ONLY, True)


QUERIES, STEP = 500, 0.02


def adaptive(seed: int, rows: int, *, exact: bool) -> float:
    """The boosting attack of Blum and Hardt: guesses at random, and at the end the vote of those
    that were said to be better. How far what is told of the best is from what it is worth on fresh
    rows, which is a half: labels are coin tosses."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, rows, dtype=np.int8)
    best, kept, votes = cell_of(0.5, STEP, MAXIMIZE), 0, np.zeros(rows)
    for _ in range(QUERIES - 1):
        guess = random.integers(0, 2, rows, dtype=np.int8)
        score = float((guess == labels).mean())
        told = ladder(cell_of(score, STEP, MAXIMIZE), best)
        best = best if told.cell is None else told.cell
        if score > 0.5 if exact else told.answer is Answer.BETTER:
            kept, votes = kept + 1, votes + guess
    score = float(((votes > kept / 2) == labels).mean())
    told = ladder(cell_of(score, STEP, MAXIMIZE), best)
    best = best if told.cell is None else told.cell
    return abs((score if exact else value_of(best, STEP, MAXIMIZE)) - 0.5)


def bound(rows: int, chance: float) -> float:
    """Theorem 3.1 of Blum and Hardt: but for a chance, the best that is told is within this of the
    best that is true: exp(-2 e^2 n + (1 / step + 2) ln(4 k / step) + 1), and the step."""
    exponent = (1 / STEP + 2) * math.log(4 * QUERIES / STEP) + 1 - math.log(chance)
    return math.sqrt(exponent / (2 * rows)) + STEP


def test_the_ladder_stays_within_its_bound_against_500_adaptive_queries() -> None:
    rows = 20_000
    assert bound(rows, 0.05) < 0.15
    assert max(adaptive(seed, rows, exact=False) for seed in range(5)) <= bound(rows, 0.05)


def test_on_few_rows_exact_scores_foretell_coin_tosses_and_the_ladder_does_not() -> None:
    """500 rows: a standard error is 0.022."""
    ladders = [adaptive(seed, 500, exact=False) for seed in range(20)]
    exacts = [adaptive(seed, 500, exact=True) for seed in range(20)]
    assert max(ladders) <= 4 * STEP
    assert min(exacts) > 0.13


def test_few_bits_name_few_transcripts() -> None:
    """Counted: no more than 2^B of all transcripts of up to 6 looks cost B bits or less."""
    costs: dict[float, int] = defaultdict(int)
    frontier: dict[tuple[int, float], int] = {(0, 0.0): 1}
    for _ in range(6):
        after: dict[tuple[int, float], int] = defaultdict(int)
        for (best, spent), count in frontier.items():
            words = {ladder(cell, best) for cell in range(best, best + MOST_STEPS + 1)}
            for word in words:
                spent_now = round(spent + word.bits, 6)
                after[(best if word.cell is None else word.cell, spent_now)] += count
        frontier = {state: count for state, count in after.items() if state[1] <= 20}
    for (_, spent), count in frontier.items():
        costs[spent] += count
    total = 0
    for spent in sorted(costs):
        total += costs[spent]
        assert total <= 2**spent


@pytest.mark.parametrize("score", [-1e300, -4.0, 0.5, 1.0])
def test_a_score_without_a_lowest_value_is_told_in_few_bits(score: float) -> None:
    """R squared: far below its tiers it is "at most", and has no tier."""
    goal = objective(MAXIMIZE, must=0.4, should=0.6)
    step = step_of(goal.tiers, MAXIMIZE, 400)
    frame = Frame(
        objective=goal,
        split=Split.HELD_OUT,
        rows=400,
        step=step,
        grid="g",
        best=None,
        centre=cell_of(0.5, step, MAXIMIZE),
    )
    word = word_for(frame, score, left=20.0, better=None, code=None)
    assert word is not None
    assert word.bits <= max(bits for _, bits in limits(frame))
    assert word.tier is goal.tier(score)
    assert (word.told.bound is Bound.AT_MOST) == (score < 0)
