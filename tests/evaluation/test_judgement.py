import numpy as np
import pytest

from harness.domain.records import Objective
from harness.domain.statuses import Direction, Tier
from harness.evaluation.judgement import Earlier, Worth, judge, p_of, worth
from harness.evaluation.noise_floor import compare
from harness.evaluation.paired import paired_test


def objective(direction=Direction.MAXIMIZE):
    return Objective(metric="m", direction=direction, tiers={Tier.MUST: 0.5}, seeds=3, queries=1)


def seeds(gain=0.05):
    return compare([0.80 + gain, 0.81 + gain, 0.79 + gain], [0.80, 0.81, 0.79], objective())


def rows(ahead, behind, n=200):
    candidate = np.zeros((1, n))
    reference = np.zeros((1, n))
    candidate[0, :ahead] = 1
    reference[0, ahead : ahead + behind] = 1
    return paired_test(candidate, reference, right_or_wrong=True, seed=1)


def tried(*p_values, better=False):
    return [
        Earlier(experiment=f"exp-{place:04d}", p=p, better=better)
        for place, p in enumerate(p_values, 1)
    ]


def test_better_by_seeds_and_rows():
    found = judge(seeds(), rows(20, 2), [], objective())
    assert found.better is True
    assert found.p == max(seeds().p, rows(20, 2).p)
    assert "On the same rows (McNemar's exact test): 20 of 200 rows higher and 2 lower" in found.why
    assert "the first try compared with this reference" in found.why


def test_rows_that_differ_by_luck_alone_keep_nothing():
    found = judge(seeds(), rows(3, 1), [], objective())
    assert found.better is False
    assert "The rows do not bear it out" in found.why


def test_rows_that_point_the_other_way_are_no_evidence():
    assert p_of(seeds(), rows(2, 20), objective()) == 1.0


def test_earlier_tries_count():
    few, many = (judge(seeds(0.035), None, tried(*[0.5] * tries), objective()) for tries in (0, 9))
    assert few.better is True
    assert many.better is False
    assert many.p == few.p
    assert many.p_corrected == pytest.approx(10 * few.p)
    assert "Too many were tried for that" in many.why
    assert "corrected for the 10 tries compared with this reference so far (Holm)" in many.why


def test_an_earlier_one_that_no_longer_holds_is_named():
    """0.03 was better as the first of its reference; of three the smallest counts three times."""
    found = judge(seeds(0.035), None, tried(0.03, 0.6, better=True), objective())
    assert found.p == pytest.approx(0.0127, abs=1e-3)
    assert (found.better, found.comparisons, found.no_longer) == (True, 3, ("exp-0001", "exp-0002"))
    assert (
        "With 3 compared, exp-0001 is no longer beyond the noise (corrected p = 0.06)." in found.why
    )
    assert judge(seeds(), None, tried(0.6), objective()).no_longer == ()


@pytest.mark.parametrize(
    ("gain", "paired", "word"),
    [
        (0.05, rows(20, 2), Worth.BETTER),
        (0.05, rows(3, 1), Worth.WITHIN),
        (-0.05, rows(2, 20), Worth.WORSE),
        (-0.05, rows(1, 3), Worth.WITHIN),
        (0.0, None, Worth.WITHIN),
    ],
)
def test_the_one_word_of_a_recorded_comparison(gain, paired, word):
    assert worth(judge(seeds(gain), paired, [], objective()).plain()) is word


def test_too_few_seeds_stay_inconclusive():
    found = judge(compare([0.9, 0.9], [0.8] * 3, objective()), rows(20, 2), tried(0.1), objective())
    assert (found.better, found.p, found.p_corrected, found.comparisons) == (None, None, None, 2)


def test_false_alarms_over_a_plan_without_any_effect():
    """300 plans of 8 experiments that are all their parent: how often is one kept?"""
    draw, raw, corrected = np.random.default_rng(3), 0, 0
    for _ in range(300):
        parent, earlier, kept, lucky = draw.normal(size=5), [], False, False
        for _ in range(8):
            comparison = compare(draw.normal(size=5).tolist(), parent.tolist(), objective())
            found = judge(comparison, None, earlier, objective())
            kept, lucky = kept or found.better is True, lucky or comparison.better is True
            earlier.append(Earlier(experiment="e", p=found.p, better=found.better))
        raw, corrected = raw + lucky, corrected + kept
    assert corrected < raw
    assert corrected / 300 < 0.08
