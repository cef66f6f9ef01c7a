"""The power that `plan check` tells is what the comparison has on such models."""

import numpy as np
import pytest

from harness.domain.records import Objective
from harness.domain.statuses import Direction, Tier
from harness.evaluation.comparison import combine
from harness.evaluation.noise_floor import Pairing, compare
from harness.evaluation.paired import paired_test
from harness.evaluation.power import power_of

POWER_3, SEEDS_80 = 0.63, 5
GOAL = Objective(
    metric="accuracy", direction=Direction.MAXIMIZE, tiers={Tier.MUST: 0.5}, seeds=3, queries=1
)


def models(draw, n, seeds, gain):
    """Right or wrong, (seeds, n) of two experiments, as the assumption says: a fifth of the rows is
    a toss for each seed, 5% are right in one experiment alone, and a seed shifts the tosses."""
    kind = draw.random(n)
    both = []
    for mine in (0.05 + gain) / 2, (0.05 - gain) / 2:
        sure = kind < 0.70
        own = (kind >= 0.70) & (kind < 0.75)
        share = mine / 0.05
        ahead = own & (
            ((kind - 0.70) / 0.05 < share) if mine > 0.025 else ((kind - 0.70) / 0.05 >= 1 - share)
        )
        toss = kind >= 0.80
        shift = 0.005 * draw.normal(size=(seeds, 1))
        tossed = draw.random((seeds, n)) < 0.5 + shift / 0.2
        both.append((sure | ahead | (toss & tossed)).astype(float))
    return both


def found(n, seeds, *, gain=0.02, trials=200):
    draw, better = np.random.default_rng(n + seeds), 0
    for trial in range(trials):
        mine, theirs = models(draw, n, seeds, gain)
        rows = paired_test(mine, theirs, right_or_wrong=True, seed=trial)
        scores = mine.mean(1).tolist(), theirs.mean(1).tolist()
        by_seeds = compare(*scores, GOAL, paired=True, pairing=Pairing.SEEDS)
        better += combine(by_seeds, rows, [], GOAL).better is True
    return better / trials


@pytest.mark.parametrize(("rows", "seeds"), [(2000, 3), (2000, 5), (600, 3), (200, 3)])
def test_the_figure_is_what_the_comparison_finds(rows, seeds):
    """Also where it is low: there a product of two powers was half of it."""
    told = power_of("accuracy", rows=rows, seeds=seeds, groups=None, labels=None)
    assert found(rows, seeds) == pytest.approx(told.power, abs=0.09)


def test_two_points_at_2000_rows_with_3_seeds():
    """As docs/statistics.md says."""
    told = power_of("accuracy", rows=2000, seeds=3, groups=None, labels=None)
    assert told.gain == 0.02
    assert (round(told.power, 2), told.seeds_wanted) == (POWER_3, SEEDS_80)
    assert (
        f"a gain of 0.02 is found in {POWER_3:.0%} of cases with 2000 validation rows"
        in told.words
    )
    assert f"{SEEDS_80} seeds find it in 80%" in told.words
    assert "assumed: two seeds of one experiment answer 10% of the rows differently" in told.words
    enough = power_of("accuracy", rows=2000, seeds=SEEDS_80, groups=None, labels=None)
    assert enough.power >= 0.8


def test_without_an_effect_nothing_is_found():
    assert found(2000, 3, gain=0.0) <= 0.05


def test_few_rows_and_groups_that_are_alike_find_less():
    many = power_of("accuracy", rows=2000, seeds=3, groups=None, labels=None)
    few = power_of("accuracy", rows=100, seeds=3, groups=None, labels=None)
    alike = power_of("accuracy", rows=2000, seeds=3, groups=40, labels=None)
    assert few.power < alike.power < many.power
    assert few.seeds_wanted is None
    assert "that takes more rows" in few.words
    assert "rows of a group correlate by 0.1" in alike.words


def test_a_loss_is_told_in_its_own_unit_and_a_script_not_at_all():
    labels = [0.0, 10.0, 20.0, 30.0]
    mae = power_of("mae", rows=500, seeds=3, groups=None, labels=labels)
    assert mae.gain == pytest.approx(0.5)
    mse = power_of("mse", rows=500, seeds=3, groups=None, labels=labels)
    assert mse.gain == pytest.approx(6.25)
    assert power_of("bleu", rows=500, seeds=3, groups=None, labels=None) is None
    assert power_of("accuracy", rows=500, seeds=2, groups=None, labels=None) is None
    assert power_of("mae", rows=500, seeds=3, groups=None, labels=[1.0, 1.0]) is None
