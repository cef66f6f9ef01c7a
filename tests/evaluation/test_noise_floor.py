import math
from statistics import stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t, ttest_1samp, ttest_ind, ttest_rel

from harness.domain.records import Objective
from harness.domain.statuses import Direction, Tier
from harness.evaluation import noise_floor as of_seeds
from harness.evaluation.noise_floor import (
    POOLED,
    Pairing,
    compare,
    compare_to_baseline,
)
from harness.evaluation.outcome import FloorOf, Inconclusive, Worth


def objective(direction=Direction.MAXIMIZE):
    return Objective(metric="m", direction=direction, tiers={Tier.MUST: 0.5}, seeds=3, queries=1)


def noise_floor(one, other):
    (pooled,) = of_seeds._tests(one, other, Pairing.NONE)
    return pooled.floor


def test_the_floor_is_a_t_quantile_of_the_pooled_spread():
    a, b = [0.90, 0.92, 0.94], [0.80, 0.85, 0.87]
    pooled = math.sqrt((stdev(a) ** 2 + stdev(b) ** 2) / 2)
    assert noise_floor(a, b) == pytest.approx(
        2.7764451 * pooled * math.sqrt(2 / 3)
    )  # t(0.975, 4) from a table


def test_unequal_numbers_of_seeds():
    a, b = [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 1.5, 2.0]
    pooled = math.sqrt((4 * stdev(a) ** 2 + 2 * stdev(b) ** 2) / 6)
    assert noise_floor(a, b) == pytest.approx(
        2.4469119 * pooled * math.sqrt(1 / 5 + 1 / 3)
    )  # t(0.975, 6)


@pytest.mark.parametrize(
    ("candidate", "reference", "direction", "better"),
    [
        ([0.93, 0.94, 0.95], [0.68, 0.69, 0.70], Direction.MAXIMIZE, True),
        ([0.93, 0.94, 0.95], [0.68, 0.69, 0.70], Direction.MINIMIZE, False),
        ([0.68, 0.69, 0.70], [0.93, 0.94, 0.95], Direction.MAXIMIZE, False),
        ([0.68, 0.69, 0.70], [0.93, 0.94, 0.95], Direction.MINIMIZE, True),
        ([0.69, 0.70, 0.74], [0.68, 0.69, 0.70], Direction.MAXIMIZE, False),
        (
            [0.9, 0.9, 0.9],
            [0.8, 0.8, 0.8],
            Direction.MAXIMIZE,
            True,
        ),  # no spread: any difference counts
        ([0.8, 0.8, 0.8], [0.8, 0.8, 0.8], Direction.MAXIMIZE, False),
        ([0.1 + 0.2] * 3, [0.3] * 3, Direction.MAXIMIZE, False),  # 4e-17 is the arithmetic's
        ([0.9, 0.9], [0.1, 0.1, 0.1], Direction.MAXIMIZE, None),
        ([0.9, 0.9, 0.9], [0.1], Direction.MAXIMIZE, None),
    ],
)
def test_better_needs_a_difference_beyond_the_floor_in_the_plans_direction(
    candidate, reference, direction, better
):
    comparison = compare(candidate, reference, objective(direction))
    assert comparison.better is better
    assert comparison.difference == pytest.approx(
        sum(candidate) / len(candidate) - sum(reference) / len(reference)
    )
    assert (comparison.floor is None) == (better is None)


def test_why_says_worse_within_or_too_few():
    assert compare([0.1, 0.1, 0.1], [0.9, 0.9, 0.9], objective()).outcome is Worth.WORSE
    assert compare([0.1, 0.9, 0.5], [0.2, 0.8, 0.5], objective()).outcome is Worth.WITHIN
    few = compare([1.0, 2.0], [1.0, 2.0, 3.0], objective())
    assert (few.inconclusive, few.outcome) == (Inconclusive.TOO_FEW_SEEDS, Worth.UNKNOWN)


def test_without_a_parent_the_trivial_score_is_compared_by_the_candidates_own_spread():
    values = [0.68, 0.70, 0.72]
    comparison = compare_to_baseline(values, 0.11, objective())
    assert comparison.floor == pytest.approx(4.3026527 * 0.02 * math.sqrt(1 / 3))  # t(0.975, 2)
    assert comparison.better is True
    assert compare_to_baseline(values, 0.69, objective()).better is False
    assert compare_to_baseline(values[:2], 0.11, objective()).better is None
    assert compare_to_baseline([0.5] * 3, 0.5, objective()).better is False


@pytest.mark.parametrize("values", [[], [float("nan"), 1.0, 1.0], [math.inf] * 3])
def test_scores_that_are_none_are_refused(values):
    with pytest.raises(ValueError, match="finite"):
        compare(values, [1.0, 1.0, 1.0], objective())


scores = st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=6)


@given(scores, scores)
def test_never_better_both_ways_and_the_floor_is_symmetric(a, b):
    assert not (compare(a, b, objective()).better and compare(b, a, objective()).better)
    assert noise_floor(a, b) == pytest.approx(noise_floor(b, a))


def test_seeds_that_do_not_differ_are_judged_by_the_rows_noise() -> None:
    same = compare([0.90] * 3, [0.89] * 3, objective(), row_noise=0.02)
    assert (same.better, same.floor) == (False, 0.02)
    assert same.floor_of is FloorOf.ROWS_ALONE
    assert compare([0.95] * 3, [0.89] * 3, objective(), row_noise=0.02).better is True
    assert compare_to_baseline([0.90] * 3, 0.89, objective(), row_noise=0.02).better is False


def test_seeds_that_differ_are_judged_by_their_own_noise_where_the_rows_are_tested_in_pairs() -> (
    None
):
    scores = [0.90, 0.91, 0.92], [0.80, 0.81, 0.82]
    assert compare(*scores, objective(), row_noise=0.5, paired=True) == compare(
        *scores, objective()
    )


def test_without_pairs_a_tiny_spread_of_the_seeds_hides_no_noise_of_the_rows() -> None:
    """A frozen script's score: 0.001 better on some hundred rows, with seeds that differ by
    1e-6."""
    scores = [0.801, 0.801001, 0.800999], [0.8, 0.800001, 0.799999]
    found = compare(*scores, objective(), row_noise=0.05)
    assert (found.better, found.floor) == (False, 0.05)
    assert found.p > 0.9
    assert found.floor_of is FloorOf.ROWS
    assert compare(*scores, objective(), row_noise=0.0005).better is True
    assert compare_to_baseline(scores[0], 0.8, objective(), row_noise=0.05).better is False
    wide = compare([0.90, 0.92, 0.94], [0.80, 0.85, 0.87], objective(), row_noise=0.01)
    assert wide == compare([0.90, 0.92, 0.94], [0.80, 0.85, 0.87], objective())


@pytest.mark.parametrize("gain", [0.001, 0.02, 0.05])
def test_p_is_students_and_crosses_the_level_at_the_floor(gain):
    a, b = [0.90 + gain, 0.92 + gain, 0.94 + gain], [0.90, 0.91, 0.95]
    found = compare(a, b, objective())
    assert found.p == pytest.approx(ttest_ind(a, b).pvalue)
    assert (found.p < 0.05) is (found.difference > found.floor)


def test_p_against_the_trivial_score_and_of_the_rows_noise():
    values = [0.68, 0.70, 0.75]
    assert compare_to_baseline(values, 0.6, objective()).p == pytest.approx(
        ttest_1samp(values, 0.6).pvalue
    )
    assert compare([0.9] * 3, [0.8] * 3, objective(), row_noise=0.1).p == pytest.approx(0.05)
    assert compare([0.9] * 3, [0.8] * 3, objective()).p == 0.0
    assert compare([0.9] * 3, [0.9] * 3, objective()).p == 1.0


def test_a_reference_with_fewer_seeds_is_not_beaten():
    found = compare([0.9, 0.91, 0.92, 0.93], [0.1, 0.11, 0.12], objective())
    assert (found.better, found.floor, found.p) == (None, None, None)
    assert found.inconclusive is Inconclusive.REFERENCE_HAS_FEWER_SEEDS
    assert compare([0.9, 0.91, 0.92], [0.1, 0.11, 0.12, 0.13], objective()).better is True


def test_the_same_weights_are_compared_in_pairs():
    """Only predict differs: what a seed does to one it does to the other."""
    reference = [0.70, 0.74, 0.81]
    candidate = [0.711, 0.7505, 0.8195]
    found = compare(candidate, reference, objective(), pairing=Pairing.WEIGHTS)
    assert found.p == pytest.approx(ttest_rel(candidate, reference).pvalue)
    assert (found.better, found.floor_of) == (True, FloorOf.PAIRS)
    assert compare(candidate, reference, objective()).better is False


def test_with_shared_seeds_both_tests_share_the_level():
    reference, candidate = [0.70, 0.74, 0.81], [0.711, 0.7505, 0.8195]
    pairs, pooled = ttest_rel(candidate, reference).pvalue, ttest_ind(candidate, reference).pvalue
    found = compare(candidate, reference, objective(), pairing=Pairing.SEEDS)
    assert found.p == pytest.approx(min(pooled / POOLED, pairs / (1 - POOLED)))
    far = compare([0.80, 0.83, 0.81], [0.70, 0.71, 0.73], objective(), pairing=Pairing.SEEDS)
    assert far.floor_of is FloorOf.SEEDS
    plain = noise_floor([0.80, 0.83, 0.81], [0.70, 0.71, 0.73])
    assert far.floor == pytest.approx(plain * t.ppf(1 - 0.025 * POOLED, 4) / t.ppf(0.975, 4))


def test_seeds_that_differ_by_the_same_are_judged_by_the_rows():
    pair = [0.75, 0.80, 0.70], [0.74, 0.79, 0.69]
    found = compare(*pair, objective(), row_noise=0.02, paired=True, pairing=Pairing.SEEDS)
    assert (found.better, found.floor_of) == (False, FloorOf.ROWS_ALONE)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("seeds", [3, 5])
def test_shared_seeds_keep_the_size_whatever_they_have_in_common(correlation, seeds):
    draw = np.random.default_rng(4)
    common = math.sqrt(correlation) * draw.normal(size=(4000, 1, seeds))
    own = math.sqrt(1 - correlation) * draw.normal(size=(4000, 2, seeds))
    better = sum(
        compare(a.tolist(), b.tolist(), objective(), pairing=Pairing.SEEDS).better is True
        for a, b in common + own
    )
    assert better / 4000 <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 4000)


def test_pairs_find_what_the_seeds_hide():
    draw = np.random.default_rng(4)
    shared = draw.normal(size=(300, 1, 5))
    own = 0.05 * draw.normal(size=(300, 2, 5))
    found = {
        pairing: sum(
            compare((a + 0.2).tolist(), b.tolist(), objective(), pairing=pairing).better is True
            for a, b in shared + own
        )
        for pairing in Pairing
    }
    assert found[Pairing.NONE] < 15 < 200 < found[Pairing.SEEDS] < found[Pairing.WEIGHTS]
