import numpy as np
import pytest
from scipy.stats import binomtest, t

from bench import _covered
from bench._covered import METRICS_MEASURED, coverage
from harness.domain.metrics import METRICS, IntervalMethod
from harness.evaluation.intervals import (
    mean_error,
    mean_interval,
    percentile_interval,
    proportion_interval,
    wilson,
)
from harness.evaluation.paired import metric_interval

ONE_OF_A_KIND = (
    *("accuracy", "f1", "f1_macro", "precision", "balanced_accuracy", "top_3_accuracy"),
    *("matthews_corrcoef", "cohen_kappa", "roc_auc", "average_precision", "log_loss", "brier"),
    *("r2", "spearman", "mse", "rmse", "mae", "mape"),
)


def proportion(right: int, n: int, groups=None):
    rows = np.array([1.0] * right + [0.0] * (n - right))
    return proportion_interval(rows, rows > 0, groups)


@pytest.mark.parametrize(("right", "n"), [(0, 30), (30, 30), (7, 30), (199, 200), (1, 1)])
def test_a_proportion_has_wilsons_interval(right, n):
    known = binomtest(right, n).proportion_ci(method="wilson")
    assert proportion(right, n) == pytest.approx((known.low, known.high))


def test_a_perfect_score_has_an_interval():
    """Of 30 rows all right: the share may be 0.886; of 2,000 rows 0.998."""
    assert proportion(30, 30) == pytest.approx((0.8865, 1.0), abs=1e-4)
    assert proportion(0, 30) == pytest.approx((0.0, 0.1135), abs=1e-4)
    assert proportion(2000, 2000)[0] == pytest.approx(0.998, abs=1e-3)


def test_a_perfect_score_of_groups_is_known_from_so_many_groups():
    groups = np.repeat(np.arange(30), 20)
    assert proportion(600, 600, groups) == wilson(1.0, 30)
    low, high = proportion(599, 600, groups)  # one group is ever wrong: no reason to be surer
    assert (low, high) == wilson(599 / 600, 30)


def test_a_perfect_f1_macro_is_known_from_the_rarest_class():
    labels = ["a"] * 25 + ["b"] * 5
    interval = metric_interval("f1_macro", labels, {"prediction": labels}, None)
    assert interval == wilson(1.0, 10)


def test_groups_widen_an_interval_as_far_as_their_rows_are_alike():
    draw, groups = np.random.default_rng(3), np.repeat(np.arange(30), 20)
    alike = np.repeat((draw.random(30) < 0.7).astype(float), 20)
    apart = (draw.random(600) < 0.7).astype(float)
    widths = [np.diff(proportion_interval(x, x > 0, groups))[0] for x in (alike, apart)]
    assert widths[0] == pytest.approx(np.diff(wilson(alike.mean(), 30))[0], rel=0.1)
    assert widths[1] == pytest.approx(np.diff(wilson(apart.mean(), 600))[0], rel=0.3)
    losses = np.repeat(draw.exponential(size=30), 20)
    assert mean_interval(losses, groups) == pytest.approx(mean_interval(losses[::20]))


def test_rows_that_are_not_skewed_have_students_interval():
    rows = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    half = t.ppf(0.975, 4) * rows.std(ddof=1) / np.sqrt(5)
    assert mean_interval(rows) == pytest.approx((3 - half, 3 + half))
    assert mean_error(rows) == pytest.approx(rows.std(ddof=1) / np.sqrt(5))


def test_a_long_tail_moves_the_interval_to_its_side():
    rows = np.random.default_rng(1).lognormal(0, 1, 40)
    low, high = mean_interval(rows)
    assert high - rows.mean() > 1.3 * (rows.mean() - low)
    mirrored = mean_interval(-rows)
    assert mirrored == pytest.approx((-high, -low))


def test_a_loss_has_no_interval_below_zero():
    labels = [0.0] * 4
    low, _ = metric_interval("mse", labels, {"prediction": [0.0, 0.0, 0.1, 9.0]}, None)
    assert low == 0.0


def test_what_tells_nothing_of_other_rows_has_no_interval():
    assert mean_interval([0.25]) is None
    assert mean_interval([0.1, 0.3, 0.2], np.zeros(3, np.int64)) is None
    assert percentile_interval([0.5] * 200) is None
    assert percentile_interval([0.1, 0.2, 0.3]) == pytest.approx((0.105, 0.295))


@pytest.mark.parametrize("rows", [[], [[1.0]]])
def test_rows_of_another_shape_are_refused(rows):
    with pytest.raises(ValueError, match="one contribution a row"):
        mean_interval(rows)


def macro_f1(labels, guesses):
    hits, sizes = np.zeros(3), np.zeros(3)
    for place, name in enumerate("abc"):
        own, told = labels == name, guesses == name
        hits[place], sizes[place] = (own & told).sum(), own.sum() + told.sum()
    return np.mean(2 * hits / sizes)


def test_f1_macro_interval_is_that_of_resampling_rows():
    draw = np.random.default_rng(0)
    labels = draw.choice(["a", "b", "c"], size=400, p=[0.6, 0.3, 0.1])
    guesses = np.where(draw.random(400) < 0.8, labels, draw.choice(["a", "b", "c"], size=400))
    chosen = draw.integers(0, 400, size=(400, 400))
    scores = [macro_f1(labels[one], guesses[one]) for one in chosen]
    ours = metric_interval("f1_macro", labels.tolist(), {"prediction": guesses.tolist()}, None)
    assert ours == pytest.approx(np.quantile(scores, [0.025, 0.975]), abs=0.01)


def test_f1_macro_with_many_classes():
    labels = [str(i % 900) for i in range(5000)]
    guesses = [str((i * 7) % 900) for i in range(5000)]
    low, high = metric_interval("f1_macro", labels, {"prediction": guesses}, None)
    assert 0 <= low <= high < 0.1


def test_each_metric_is_measured():
    without = {name for name, one in METRICS.items() if one.interval is IntervalMethod.NONE}
    assert set(METRICS_MEASURED) == set(METRICS) - without
    assert without == {"ece"}


@pytest.mark.parametrize("metric", ONE_OF_A_KIND)
def test_an_interval_covers_the_truth_about_as_often_as_it_says(metric, monkeypatch):
    """150 samples of 200 rows; bench/coverage.py makes 1,000 of 30, 200 and 2,000 rows and of 30
    groups, of all metrics."""
    monkeypatch.setattr(_covered, "_TRUE_ROWS", 50_000)
    assert 0.88 <= coverage(metric, 200, repeats=150, seed=5) <= 1.0
    assert 0.85 <= coverage(metric, 600, groups=30, repeats=100, seed=6) <= 1.0
