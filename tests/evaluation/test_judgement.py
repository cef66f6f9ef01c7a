import numpy as np
import pytest

from harness.domain.records import Objective
from harness.domain.statuses import Direction, Tier
from harness.evaluation.comparison import Earlier, combine, joint_p
from harness.evaluation.noise_floor import compare
from harness.evaluation.outcome import Worth, explain, worth
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


def explained(comparison):
    return explain({**comparison.plain(), "seeds": [3, 3]})


def tried(*p_values, better=False):
    return [
        Earlier(experiment=f"exp-{place:04d}", p=p, better=better)
        for place, p in enumerate(p_values, 1)
    ]


def test_better_by_seeds_and_rows():
    found = combine(seeds(), rows(20, 2), [], objective())
    assert found.better is True
    assert found.p == max(seeds().p, rows(20, 2).p)
    words = explained(found)
    assert "On the same rows (McNemar's exact test): 20 of 200 rows higher and 2 lower" in words
    assert "first comparison with this reference" in words


def test_rows_that_differ_by_luck_alone_keep_nothing():
    found = combine(seeds(), rows(3, 1), [], objective())
    assert found.better is False
    assert "Not significant in the paired row-level test." in explained(found)


def test_rows_that_point_the_other_way_are_no_evidence():
    assert joint_p(seeds(), rows(2, 20), objective()) == 1.0


def test_earlier_tries_count():
    few, many = (
        combine(seeds(0.035), None, tried(*[0.5] * tries), objective()) for tries in (0, 9)
    )
    assert few.better is True
    assert many.better is False
    assert many.p == few.p
    assert many.p_corrected == pytest.approx(10 * few.p)
    words = explained(many)
    assert "Not significant after Holm correction for 10 comparisons." in words
    assert "after Holm correction for 10 comparisons with this reference." in words


def test_an_earlier_one_that_no_longer_holds_is_named():
    """0.03 was better as the first of its reference; of three the smallest counts three times."""
    found = combine(seeds(0.035), None, tried(0.03, 0.6, better=True), objective())
    assert found.p == pytest.approx(0.0127, abs=1e-3)
    assert (found.better, found.comparisons) == (True, 3)
    assert list(found.no_longer) == ["exp-0001", "exp-0002"]
    assert found.no_longer["exp-0001"] == pytest.approx(0.06)
    fallen = "exp-0001 is no longer significant after Holm correction for 3 comparisons (p = 0.06)."
    assert fallen in explained(found)
    assert combine(seeds(), None, tried(0.6), objective()).no_longer == {}


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
    assert worth(combine(seeds(gain), paired, [], objective()).plain()) is word


def test_too_few_seeds_stay_inconclusive():
    found = combine(
        compare([0.9, 0.9], [0.8] * 3, objective()), rows(20, 2), tried(0.1), objective()
    )
    assert (found.better, found.p, found.p_corrected, found.comparisons) == (None, None, None, 2)


def test_false_alarms_over_a_plan_without_any_effect():
    """300 plans of 8 experiments that are all their parent: how often is one kept?"""
    draw, raw, corrected = np.random.default_rng(3), 0, 0
    for _ in range(300):
        parent, earlier, kept, lucky = draw.normal(size=5), [], False, False
        for _ in range(8):
            comparison = compare(draw.normal(size=5).tolist(), parent.tolist(), objective())
            found = combine(comparison, None, earlier, objective())
            kept, lucky = kept or found.better is True, lucky or comparison.better is True
            earlier.append(Earlier(experiment="e", p=found.p, better=found.better))
        raw, corrected = raw + lucky, corrected + kept
    assert corrected < raw
    assert corrected / 300 < 0.08
