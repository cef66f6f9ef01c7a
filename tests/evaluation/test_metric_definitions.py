"""Each metric of the table is what scikit-learn (spearman: SciPy) computes: with ties, without one of
the classes, of very large and very small numbers. What a row moves is what adding it moves."""

import math
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn import metrics as theirs

from harness.domain.metrics import METRICS, IntervalMethod, Metric, Needs, PerRow
from harness.evaluation.paired import contributions, metric_interval

NAMES = list("abcdefgh")
POSITIVE = "b"
SHARES = {
    "f1": theirs.f1_score,
    "precision": theirs.precision_score,
    "recall": theirs.recall_score,
    "jaccard": theirs.jaccard_score,
}


def shares_of(of, average):
    if average == "binary":
        return lambda y, p: SHARES[of](y, p, pos_label=POSITIVE, zero_division=0)
    return lambda y, p: SHARES[of](y, p, average=average, zero_division=0)


def matrix(labels, columns):
    return np.array([columns[f"p_{name}"] for name in known(columns)]).T


def known(columns):
    return [name[2:] for name in columns]


def top(k):
    return lambda y, p: theirs.top_k_accuracy_score(y, matrix(y, p), k=k, labels=known(p))


def ranked(function):
    def of_two(y, p):
        return function(np.array(y) == POSITIVE, p["prediction"])

    def each(y, p):
        """One against the rest, as `multi_class="ovr"` with `average="macro"` does."""
        if "prediction" in p:
            return of_two(y, p)
        return np.mean([function(np.array(y) == name, p[f"p_{name}"]) for name in known(p)])

    return each


def guess(function):
    return lambda y, p: function(y, p["prediction"])


def likelihood(y, p):
    return theirs.log_loss(y, matrix(y, p), labels=known(p))


def brier(y, p):
    return theirs.brier_score_loss(y, matrix(y, p), labels=known(p))


def calibration(y, p):
    """By the definition of Guo et al. 2017, with arrays."""
    shares = matrix(y, p)
    sure, right = shares.max(1), np.array(known(p))[shares.argmax(1)] == np.array(y)
    edges, total = np.linspace(0, 1, 16) + 1e-9, 0.0
    for low, high in pairwise(edges):
        inside = (sure > low) & (sure <= high)
        if inside.any():
            total += inside.mean() * abs(sure[inside].mean() - right[inside].mean())
    return total


REFERENCES = {
    "accuracy": guess(theirs.accuracy_score),
    "balanced_accuracy": guess(theirs.balanced_accuracy_score),
    "top_k_accuracy": top(2),
    "top_3_accuracy": top(3),
    "top_5_accuracy": top(5),
    **{
        of if average == "binary" else f"{of}_{average}": guess(shares_of(of, average))
        for of in SHARES
        for average in ("binary", "micro", "macro", "weighted")
    },
    "matthews_corrcoef": guess(theirs.matthews_corrcoef),
    "cohen_kappa": guess(theirs.cohen_kappa_score),
    "roc_auc": ranked(theirs.roc_auc_score),
    "average_precision": ranked(theirs.average_precision_score),
    "log_loss": likelihood,
    "brier": brier,
    "ece": calibration,
    "r2": guess(theirs.r2_score),
    "spearman": guess(lambda y, p: spearmanr(y, p).statistic),
    "mse": guess(theirs.mean_squared_error),
    "rmse": guess(theirs.root_mean_squared_error),
    "mae": guess(theirs.mean_absolute_error),
    "mape": guess(theirs.mean_absolute_percentage_error),
    "median_absolute_error": guess(theirs.median_absolute_error),
}


def file_of(metric: Metric):
    return import_module(f"harness.evaluation.metrics.{metric.module}")


def computed(metric, labels, predictions, positive=POSITIVE):
    of = METRICS[metric]
    file, options = file_of(of), of.options_with(positive)
    if hasattr(file, "rows"):
        return float(np.mean(file.rows(labels, predictions, **options)))
    return file.score(labels, predictions, **options)


def sample(metric, draw, n=40, classes=3, *, scale=1.0):
    """Labels and predictions with ties, in the form that the metric takes."""
    of = METRICS[metric]
    if of.needs is Needs.NUMBER:
        labels = np.round(draw.normal(size=n), 1)
        return (labels * scale).tolist(), {
            "prediction": (scale * np.round(labels + draw.normal(size=n), 1)).tolist()
        }
    names = NAMES[: 2 if of.binary else classes]
    labels = draw.choice(names, n).tolist()
    labels[: len(names)] = names
    if of.needs is Needs.CLASS:
        return labels, {
            "prediction": np.where(draw.random(n) < 0.6, labels, draw.choice(names, n)).tolist()
        }
    shares = np.round(draw.dirichlet(np.ones(len(names)), n), 1)
    shares[:, 0] = np.maximum(0, 1 - shares[:, 1:].sum(1))
    shares /= shares.sum(1, keepdims=True)
    if of.needs is Needs.SCORES and len(names) == 2:
        return labels, {"prediction": shares[:, 1].tolist()}
    return labels, {f"p_{name}": shares[:, i].tolist() for i, name in enumerate(names)}


def test_each_metric_has_a_reference():
    assert set(REFERENCES) == set(METRICS)


@pytest.mark.parametrize(
    ("metric", "classes"),
    [
        (name, classes)
        for name, one in METRICS.items()
        for classes in (2, 3, 8)
        if one.options.get("k", 1) < classes
    ],
)
def test_it_is_what_scikit_learn_computes(metric, classes):
    draw = np.random.default_rng(classes)
    for _ in range(5):
        labels, predictions = sample(metric, draw, classes=classes)
        expected = REFERENCES[metric](labels, predictions)
        assert computed(metric, labels, predictions) == pytest.approx(expected)


@pytest.mark.parametrize(
    "metric", [name for name, one in METRICS.items() if one.needs is Needs.CLASS]
)
@pytest.mark.filterwarnings("ignore")
def test_classes_that_only_labels_or_only_guesses_have(metric):
    """What is never predicted, and what no label is: weight 0 where the weights are rows."""
    never = ["a", "b", "a", "b", "a"], {"prediction": ["a"] * 5}
    unknown = ["a", "b", "a", "a", "b"], {"prediction": ["a", "b", "c", "a", "c"]}
    alone = ["b"] * 4, {"prediction": ["b"] * 4}
    cases = [never, alone] if METRICS[metric].binary else [never, unknown, alone]
    for labels, predictions in cases:
        if metric == "cohen_kappa" and labels == alone[0]:
            continue  # scikit-learn has no number for it
        expected = REFERENCES[metric](labels, predictions)
        assert computed(metric, labels, predictions) == pytest.approx(expected)
        moved = METRICS[metric].per_row is not PerRow.NONE
        assert moved
        rows = contributions(metric, labels, predictions, POSITIVE)
        assert rows.mean() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("metric", "scale"),
    [
        (name, scale)
        for name, one in METRICS.items()
        for scale in (1e-150, 1e-9, 1e9, 1e150)
        if one.needs is Needs.NUMBER and (scale > 1 or name != "mape")
    ],
)
def test_numbers_of_any_size(metric, scale):
    labels, predictions = sample(metric, np.random.default_rng(3), scale=scale)
    labels = [label or scale for label in labels]
    expected = REFERENCES[metric](labels, predictions)
    assert computed(metric, labels, predictions) == pytest.approx(expected)


def test_numbers_too_large_for_squares_end_in_infinity_and_not_in_an_error():
    labels, far = [1e200, -1e200, 0.0], {"prediction": [-1e200, 1e200, 0.0]}
    assert computed("rmse", labels, far) == math.inf
    assert not math.isfinite(computed("r2", labels, far))


def test_labels_that_are_all_the_same():
    """As scikit-learn says of R squared; a ranking of one class is none."""
    assert computed("r2", [2.0, 2.0], {"prediction": [2.0, 2.0]}) == 1.0
    assert computed("r2", [2.0, 2.0], {"prediction": [2.0, 3.0]}) == 0.0
    assert computed("spearman", [2.0, 2.0], {"prediction": [2.0, 3.0]}) == 0.0
    for metric in ("roc_auc", "average_precision"):
        assert math.isnan(computed(metric, ["b", "b"], {"prediction": [0.1, 0.2]}))
        assert metric_interval(metric, ["b", "b"], {"prediction": [0.1, 0.2]}, None, "b") is None


def test_an_absent_class_leaves_the_mean_of_the_others():
    """Of a split that lacks class c, where scikit-learn has no number."""
    labels = ["a", "a", "b", "b"]
    columns = {
        "p_a": [0.7, 0.2, 0.1, 0.3],
        "p_b": [0.2, 0.6, 0.8, 0.5],
        "p_c": [0.1, 0.2, 0.1, 0.2],
    }
    areas = [
        theirs.roc_auc_score([label == name for label in labels], columns[f"p_{name}"])
        for name in "ab"
    ]
    assert computed("roc_auc", labels, columns, None) == pytest.approx(np.mean(areas))


INFLUENCES = [name for name, one in METRICS.items() if one.per_row is PerRow.INFLUENCE]


@pytest.mark.parametrize("metric", INFLUENCES)
def test_what_a_row_moves_is_what_adding_it_moves(metric):
    """To first order: of 300 copies of the sample and one row more."""
    copies, n = 300, 24
    draw = np.random.default_rng(5)
    labels, predictions = sample(metric, draw, n=n)
    before = computed(metric, labels, predictions)
    moved = contributions(metric, labels, predictions, POSITIVE)
    assert moved.mean() == pytest.approx(before)
    size = np.abs(moved - before).max()
    assert size > 0
    for row in (0, 7, 11):
        more = {name: [*(values * copies), values[row]] for name, values in predictions.items()}
        after = computed(metric, [*(labels * copies), labels[row]], more)
        real = (after - before) * (n * copies + 1)
        assert real == pytest.approx(moved[row] - before, abs=0.01 * size)


def test_the_error_of_an_area_is_delongs():
    """DeLong, DeLong and Clarke-Pearson 1988: of placements of both sides."""
    draw = np.random.default_rng(6)
    labels, predictions = sample("roc_auc", draw, n=200, classes=2)
    positive = np.array(labels) == POSITIVE
    scores = np.array(predictions["prediction"])
    wins = scores[positive][:, None] - scores[~positive][None, :]
    kernel = (wins > 0) + 0.5 * (wins == 0)
    sides = [kernel.mean(axis).var(ddof=0) / len(kernel.mean(axis)) for axis in (0, 1)]
    moved = contributions("roc_auc", labels, predictions, POSITIVE)
    assert moved.var() / len(moved) == pytest.approx(sum(sides))


@pytest.mark.parametrize(
    "metric",
    [
        name
        for name, one in METRICS.items()
        if one.interval is IntervalMethod.PROPORTION and one.needs is Needs.CLASS
    ],
)
def test_a_perfect_score_still_has_an_interval(metric):
    of = METRICS[metric]
    labels = ["a"] * 25 + ["b"] * 5
    low, high = metric_interval(metric, labels, {"prediction": labels}, None, POSITIVE)
    assert high == of.range[1]
    assert of.range[0] < low < 0.95
