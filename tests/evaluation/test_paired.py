import itertools

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import f1_score

from harness.domain.metrics import METRICS, Needs
from harness.evaluation.paired import contributions, mcnemar, paired_test, signs_p


@pytest.mark.parametrize(
    ("ahead", "behind"), [(0, 0), (5, 5), (10, 2), (2, 10), (1, 0), (40, 25), (300, 240)]
)
def test_mcnemar_is_the_two_sided_binomial_test(ahead, behind):
    expected = binomtest(ahead, ahead + behind).pvalue if ahead + behind else 1.0
    assert mcnemar(ahead, behind) == pytest.approx(expected)


def test_mcnemar_of_a_table_in_a_textbook():
    """Of 16 discordant pairs 4 and 12: 2 * 2517 / 65536."""
    assert mcnemar(4, 12) == pytest.approx(0.076813, abs=1e-6)


def test_rows_are_counted_where_one_is_right_in_more_seeds():
    candidate = np.array([[1, 1, 0, 1.0], [1, 0, 0, 1.0]])
    reference = np.array([[1, 1, 0, 0.0]])
    found = paired_test(candidate, reference, right_or_wrong=True, seed=1)
    assert (found.candidate_ahead, found.reference_ahead, found.n) == (1, 1, 4)
    assert found.p == 1.0
    assert found.gain == 0.125


def test_seeds_that_agree_leave_mcnemars_test_and_others_weigh_by_their_mean():
    """9 rows gained and 2 lost; 200 more on which seeds toss differ by a third or two."""
    reference = np.zeros((3, 300))
    reference[:, :2] = 1
    candidate = np.zeros((3, 300))
    candidate[:, 2:11] = 1
    exact = paired_test(candidate, reference, right_or_wrong=True, seed=1)
    assert (exact.test, exact.p) == ("McNemar's exact test", mcnemar(9, 2))
    draw = np.random.default_rng(2)
    candidate[:, 100:], reference[:, 100:] = draw.random((2, 3, 200)) < 0.5
    tossed = paired_test(candidate, reference, right_or_wrong=True, seed=1)
    assert tossed.test == "signs of the rows"
    assert tossed.p > exact.p


def test_equal_rows_have_no_evidence():
    rows = np.random.default_rng(0).normal(size=(3, 50))
    for right_or_wrong in (True, False):
        found = paired_test(rows, rows, right_or_wrong=right_or_wrong, seed=1)
        assert (found.p, found.half_width) == (1.0, 0.0)


@pytest.mark.parametrize("right_or_wrong", [True, False])
def test_false_alarms_without_an_effect(right_or_wrong, monkeypatch):
    """400 pairs of equally good models on 30 rows, losses with a long tail: at most 5% alarms,
    2.5% of them for the candidate, and what chance adds."""
    monkeypatch.setattr("harness.evaluation.paired.TOSSES", 999)
    draw, alarms, better = np.random.default_rng(5), 0, 0
    for trial in range(400):
        hard = draw.random(30)
        pair = [
            (draw.random(30) < hard).astype(float) if right_or_wrong else draw.lognormal(hard, 1.5)
            for _ in range(2)
        ]
        found = paired_test(
            pair[0][None], pair[1][None], right_or_wrong=right_or_wrong, seed=trial
        )
        alarms += found.p <= 0.05
        better += found.p <= 0.05 and found.gain > 0
    assert 0 < alarms / 400 < 0.08
    assert better / 400 < 0.05


def test_few_units_are_enumerated_as_the_sign_test_of_a_textbook():
    """Darwin's 15 pairs of maize (Fisher 1935, section 21): 1,726 of 32,768 choices of signs are at
    least as far out; here the first 12, enumerated, against all 4,096."""
    pairs = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48.0])
    assert signs_p(pairs, seed=1) == pytest.approx(1726 / 32768, abs=0.01)
    some = pairs[:12]
    signs = np.array(list(itertools.product([1, -1], repeat=12)))
    assert signs_p(some, seed=1) == np.mean(np.abs(signs @ some) >= some.sum())


def test_a_clear_difference_outlives_many_tries():
    """200 rows that all gain: 2 / 2 ** 200 is below 1e-40, whatever 4,999 tosses see."""
    sums = np.full(200, 0.1)
    assert signs_p(sums, seed=1) < 1e-40
    assert signs_p(sums * np.where(np.arange(200) % 2, 1, -1), seed=1) == 1.0


def test_of_right_and_wrong_rows_the_signs_are_mcnemars_test():
    differences = np.array([1.0] * 9 + [-1.0] * 2 + [0.0] * 40)
    assert signs_p(differences, seed=1) == pytest.approx(mcnemar(9, 2))


def test_groups_that_have_all_in_common_count_once():
    """Ten groups of 50 equal rows, nine of them ahead: 22 of 1,024 choices of signs."""
    groups = np.repeat(np.arange(10), 50)
    ahead = np.repeat([1.0] * 9 + [0.0], 50)[None]
    behind = np.repeat([0.0] * 9 + [1.0], 50)[None]
    found = paired_test(ahead, behind, right_or_wrong=True, seed=1, groups=groups)
    assert found.p == pytest.approx(22 / 1024)
    assert (found.groups, found.n, found.candidate_ahead) == (10, 500, 450)
    alone = paired_test(ahead, behind, right_or_wrong=True, seed=1)
    assert alone.p < 1e-6
    assert found.half_width > 5 * alone.half_width


def test_fewer_than_six_groups_can_show_nothing():
    groups = np.repeat(np.arange(5), 50)
    found = paired_test(
        np.ones((3, 250)), np.zeros((3, 250)), right_or_wrong=True, seed=1, groups=groups
    )
    assert found.p == 2 / 32


def test_a_real_difference_is_found_that_unpaired_rows_hide():
    draw = np.random.default_rng(6)
    hard = draw.normal(scale=3, size=200) ** 2
    better, worse = hard[None], hard[None] + 0.1 + 0.2 * draw.random((1, 200))
    found = paired_test(better, worse, right_or_wrong=False, seed=1)
    assert found.p < 0.001
    assert found.gain == pytest.approx(-0.2, abs=0.03)
    assert found.half_width < 0.02


def test_many_rows_take_the_normal_limit_of_the_same_statistic(monkeypatch):
    draw = np.random.default_rng(7)
    pair = draw.normal(size=(1, 1500)), draw.normal(0.06, 1, size=(1, 1500))
    limit = paired_test(*pair, right_or_wrong=False, seed=1)
    monkeypatch.setattr("harness.evaluation.paired.TOSSED", 2000)
    tossed = paired_test(*pair, right_or_wrong=False, seed=1)
    assert tossed.p == pytest.approx(limit.p, abs=0.02)


def test_shapes_must_fit():
    with pytest.raises(ValueError, match="paired rows"):
        paired_test(np.ones((1, 3)), np.ones((1, 4)), right_or_wrong=True, seed=1)


def test_contributions_of_f1_macro_have_it_as_their_mean_and_its_bootstrap_spread():
    draw = np.random.default_rng(8)
    labels = draw.choice(["a", "b", "c"], size=400, p=[0.6, 0.3, 0.1])
    guesses = np.where(draw.random(400) < 0.7, labels, draw.choice(["a", "b", "c"], size=400))
    rows = contributions("f1_macro", labels.tolist(), {"prediction": guesses.tolist()})
    assert rows.mean() == pytest.approx(f1_score(labels, guesses, average="macro"))
    chosen = draw.integers(0, 400, size=(300, 400))
    spread = np.std([f1_score(labels[one], guesses[one], average="macro") for one in chosen])
    assert rows.std() / 20 == pytest.approx(spread, rel=0.15)


def test_contributions_of_the_other_metrics():
    assert contributions("accuracy", ["a", "b"], {"prediction": ["a", "a"]}).tolist() == [1.0, 0.0]
    assert contributions("mse", [1.0, 2.0], {"prediction": [1.0, 4.0]}).tolist() == [0.0, 4.0]


def two_models(metric: str, draw: np.random.Generator, n: int):
    """Labels, and the predictions of two equally good models that share half of their errors."""
    positive = draw.random(n) < 0.3
    both = draw.normal(size=n)
    labels = np.where(positive, "y", "n")
    if METRICS[metric].needs is Needs.NUMBER:
        labels = draw.normal(size=n)
    scores = [
        (labels if labels.dtype.kind == "f" else 1.5 * positive) + (both + draw.normal(size=n)) / 2
        for _ in range(2)
    ]
    if METRICS[metric].needs is Needs.CLASS:
        told = [np.where(score > 0.75, "y", "n").tolist() for score in scores]
    else:
        told = [score.tolist() for score in scores]
    return labels.tolist(), [{"prediction": one} for one in told]


@pytest.mark.parametrize("metric", ["roc_auc", "f1", "average_precision", "r2"])
@pytest.mark.parametrize("n", [40, 200])
def test_false_better_of_areas_and_f1_without_an_effect(metric, n, monkeypatch):
    """250 pairs: at most 5% alarms, 2.5% of them for the candidate, and what chance adds; and there
    are some, for the test can find something."""
    monkeypatch.setattr("harness.evaluation.paired.TOSSES", 499)
    draw, alarms, better = np.random.default_rng(n), 0, 0
    for trial in range(250):
        labels, models = two_models(metric, draw, n)
        mine, theirs = (contributions(metric, labels, one, "y")[None] for one in models)
        found = paired_test(mine, theirs, right_or_wrong=False, seed=trial)
        alarms += found.p <= 0.05
        better += found.p <= 0.05 and found.gain > 0
    assert 0 < alarms / 250 < 0.09
    assert better / 250 < 0.055


@pytest.mark.parametrize("metric", ["roc_auc", "f1", "average_precision", "spearman", "rmse"])
def test_a_better_model_is_found_by_its_influences(metric):
    draw = np.random.default_rng(9)
    labels, (worse, _) = two_models(metric, draw, 400)
    if METRICS[metric].needs is Needs.CLASS:
        flipped = draw.random(400) < 0.5
        better = np.where(flipped, labels, worse["prediction"]).tolist()
    else:
        truth = np.array(labels) if metric in ("spearman", "rmse") else np.array(labels) == "y"
        better = (np.array(worse["prediction"]) + 2 * truth).tolist()
        if metric in ("spearman", "rmse"):
            better = ((np.array(worse["prediction"]) + truth) / 2).tolist()
    mine, theirs = (
        contributions(metric, labels, {"prediction": one}, "y")[None]
        for one in (better, worse["prediction"])
    )
    found = paired_test(mine, theirs, right_or_wrong=False, seed=1)
    assert found.p < 0.01
    assert (found.gain > 0) == (METRICS[metric].direction == "maximize")
