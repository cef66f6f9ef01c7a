import numpy as np
import pytest

from harness.domain.records import Objective
from harness.domain.statuses import Direction, Tier
from harness.evaluation.comparison import SPENDING, Earlier, combine, joint_p
from harness.evaluation.noise_floor import compare
from harness.evaluation.outcome import LEVEL, Worth, explain, worth
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
    assert "Row by row (McNemar's exact test): 20 of 200 rows better and 2 worse." in words
    assert "(higher is better): better by more than the noise." in words
    decided = "The seeds decide, as the weaker evidence: p = "
    assert words.endswith(f"{decided}{found.p:.2g}; first comparison with this reference.")
    assert words.count("p = ") == 1


def test_rows_that_differ_by_luck_alone_keep_nothing():
    found = combine(seeds(), rows(3, 1), [], objective())
    assert found.better is False
    words = explained(found)
    assert "The rows decide, as the weaker evidence: p = 0.62; first comparison" in words
    assert words.endswith("Not significant.")


def test_rows_that_point_the_other_way_are_no_evidence():
    assert joint_p(seeds(), rows(2, 20), objective()) == 1.0
    words = explained(combine(seeds(), rows(2, 20), [], objective()))
    assert "Seeds and rows disagree: p = 1;" in words


def test_of_a_loss_fewer_is_better_and_how_much_counts_too():
    goal = objective(Direction.MINIMIZE)
    draw = np.random.default_rng(4)
    ours, theirs = draw.normal(size=(1, 60)), draw.normal(size=(1, 60))
    paired = paired_test(ours, theirs, right_or_wrong=False, seed=1)
    words = explained(combine(compare([0.8] * 3, [0.9] * 3, goal), paired, [], goal))
    counts = f"{paired.reference_ahead} of 60 rows better and {paired.candidate_ahead} worse"
    assert f"Row by row (signs of the rows): {counts}; by how much counts too." in words
    assert "(lower is better)" in words


def test_earlier_tries_count():
    few, many = (
        combine(seeds(0.035), None, tried(*[0.5] * tries), objective()) for tries in (0, 9)
    )
    assert few.better is True
    assert many.better is False
    assert many.p == few.p
    assert many.p_corrected == pytest.approx(10**SPENDING * few.p)
    words = explained(many)
    assert "The seeds decide: p = " in words
    assert "after correction for 10 comparisons with this reference. Not significant." in words


def test_an_earlier_one_that_no_longer_holds_is_named():
    """0.03 was better as the first of its reference; of three the smallest counts three times."""
    found = combine(seeds(0.04), None, tried(0.03, 0.6, better=True), objective())
    assert found.p == pytest.approx(0.008, abs=1e-3)
    assert found.comparisons == 3
    assert list(found.no_longer) == ["exp-0001", "exp-0002"]
    assert found.no_longer["exp-0001"] == pytest.approx(0.06)
    fallen = "exp-0001 is no longer significant after correction for 3 comparisons (p = 0.06)."
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


def test_the_level_is_spent_once_however_many_tries_there_are():
    """One-sided, the k-th try errs with at most LEVEL / 2 / k ** SPENDING."""
    shares = 1 / np.arange(1, 1_000_000, dtype=float) ** SPENDING
    beyond = 1_000_000 ** (1 - SPENDING) / (SPENDING - 1)
    assert LEVEL / 2 * (shares.sum() + beyond) < LEVEL


@pytest.mark.parametrize("shared", [True, False])
def test_false_keeps_over_a_plan_without_any_effect(shared):
    """1,000 plans of 8 experiments of 3 seeds that are all as good as their reference (one parent,
    or one of its own): at most 2.5% of first tries and 5% of plans keep one."""
    draw, plans = np.random.default_rng(3), 1000
    first = kept = 0
    for _ in range(plans):
        parent, earlier, better = draw.normal(size=3).tolist(), [], []
        for _ in range(8):
            if not shared:
                parent = draw.normal(size=3).tolist()
            found = combine(
                compare(draw.normal(size=3).tolist(), parent, objective()),
                None,
                earlier,
                objective(),
            )
            better.append(found.better is True)
            earlier.append(Earlier(experiment="e", p=found.p, better=found.better))
        first, kept = first + better[0], kept + any(better)
    assert within(first, plans, 0.025)
    assert within(kept, plans, 0.05)
    assert kept > first > 0


def within(count, trials, most):
    """Not above `most` by more than three standard errors of so many trials."""
    return count / trials <= most + 3 * (most * (1 - most) / trials) ** 0.5


def null_plan(draw, kind, tries=8):
    """Rows of a parent and of tries that are as good: 30 groups of 20 rows, of which each model has
    most right or most wrong; three seeds that hardly differ. What a row test must hold alone."""
    groups = np.repeat(np.arange(30), 20)
    models = draw.normal(scale=2.0, size=(tries + 1, 1, 30))[:, :, groups]
    rows = draw.normal(size=(tries + 1, 1, 600)) + models
    seeds = rows + 0.05 * draw.normal(size=(tries + 1, 3, 600))
    return groups, (seeds > 0).astype(float) if kind == "accuracy" else np.exp(-seeds / 2)


@pytest.mark.parametrize("kind", ["accuracy", "loss"])
def test_false_keeps_with_groups_that_have_much_in_common(kind, monkeypatch):
    """As `gate check` compares: by seeds, by whole groups, and in the order of the tries. Row by
    row about 30% of first tries would be kept."""
    monkeypatch.setattr("harness.evaluation.paired.TOSSES", 999)
    draw, plans, goal = np.random.default_rng(8), 120, objective()
    if kind == "loss":
        goal = objective(Direction.MINIMIZE)
    first = kept = naive = 0
    for number in range(plans):
        groups, models = null_plan(draw, kind)
        earlier, better = [], []
        for candidate in models[1:]:
            found = by_rows(candidate, models[0], groups, kind, number)
            scores = candidate.mean(1).tolist(), models[0].mean(1).tolist()
            by_seeds = compare(*scores, goal, row_noise=found.half_width, paired=True)
            made = combine(by_seeds, found, earlier, goal)
            better.append(made.better is True)
            earlier.append(Earlier(experiment="e", p=made.p, better=made.better))
        alone = by_rows(models[1], models[0], None, kind, number)
        naive += alone.p <= LEVEL and goal.gain(alone.gain, 0.0) > 0
        first, kept = first + better[0], kept + any(better)
    assert within(first, plans, 0.025)
    assert within(kept, plans, 0.05)
    assert naive / plans > 0.15


def by_rows(candidate, reference, groups, kind, seed):
    return paired_test(
        candidate, reference, right_or_wrong=kind == "accuracy", seed=seed, groups=groups
    )


def test_groups_stand_in_the_words():
    groups = np.repeat(np.arange(20), 10)
    candidate, reference = np.zeros((1, 200)), np.zeros((1, 200))
    candidate[0, ::5] = 1
    found = paired_test(candidate, reference, right_or_wrong=True, seed=1, groups=groups)
    words = explained(combine(seeds(), found, [], objective()))
    assert "Row by row (signs of whole groups): 40 of 200 rows in 20 groups better" in words
