import math

import numpy as np
import pytest

from harness.evaluation import intervals
from harness.evaluation.intervals import bootstrap_macro_f1, bootstrap_mean, percentile_interval
from harness.evaluation.metrics.macro_f1 import score as macro_f1


def normal_interval(rows):
    half = 1.96 * rows.std() / math.sqrt(rows.size)
    return rows.mean() - half, rows.mean() + half


def test_few_distinct_values_give_the_normal_interval_of_a_proportion():
    rows = np.array([1.0] * 700 + [0.0] * 300)
    assert bootstrap_mean(rows, seed=3) == pytest.approx(normal_interval(rows), abs=0.004)


def test_many_distinct_values_give_the_normal_interval_of_a_mean():
    rows = np.random.default_rng(1).normal(5, 2, size=6000)
    assert bootstrap_mean(rows, seed=3) == pytest.approx(normal_interval(rows), abs=0.01)


def test_the_two_ways_of_drawing_agree(monkeypatch):
    rows = np.random.default_rng(2).normal(size=800)
    by_rows = bootstrap_mean(rows, seed=0)
    monkeypatch.setattr(intervals, "_CHEAP", 0)
    assert bootstrap_mean(rows, seed=0) == pytest.approx(by_rows, abs=0.02)


def test_the_seed_decides_and_chunks_only_bound_memory(monkeypatch):
    rows = np.random.default_rng(2).normal(size=200)
    assert (
        bootstrap_mean(rows, seed=5) == bootstrap_mean(rows, seed=5) != bootstrap_mean(rows, seed=6)
    )
    whole = bootstrap_mean(rows, seed=5)
    monkeypatch.setattr(intervals, "CHUNK", 1000)
    assert bootstrap_mean(rows, seed=5) == pytest.approx(whole, abs=0.05)


def test_a_chunk_never_holds_more_than_it_may(monkeypatch):
    held = []
    monkeypatch.setattr(intervals, "CHUNK", 50_000)
    real = np.random.default_rng

    class Watched:
        def __init__(self, seed):
            self._generator = real(seed)

        def integers(self, low, high, size, dtype):
            held.append(size[0] * size[1])
            return self._generator.integers(low, high, size=size, dtype=dtype)

    monkeypatch.setattr(np.random, "default_rng", Watched)
    bootstrap_mean(np.arange(1000.0), seed=1)
    assert max(held) <= 50_000
    assert sum(held) == 1000 * intervals.RESAMPLES


def test_constant_rows_and_a_single_row_have_no_width():
    assert bootstrap_mean([2.5] * 10, seed=1) == (2.5, 2.5)
    assert bootstrap_mean([0.25], seed=1) == (0.25, 0.25)
    assert bootstrap_macro_f1(["a"], ["a"], seed=1) == (1.0, 1.0)


@pytest.mark.parametrize("rows", [[], [[1.0]]])
def test_rows_of_another_shape_are_refused(rows):
    with pytest.raises(ValueError, match="one contribution a row"):
        bootstrap_mean(rows, seed=1)


def test_macro_f1_counts_are_the_metric_itself():
    generator = np.random.default_rng(0)
    labels = generator.choice(["a", "b", "c"], size=50)
    guesses = generator.choice(["a", "b", "z"], size=50)
    _, encoded = np.unique(np.concatenate([labels, guesses]), return_inverse=True)
    pairs, counts = np.unique(encoded[:50] * 4 + encoded[50:], return_counts=True)
    direct = macro_f1(labels.tolist(), {"prediction": guesses.tolist()})
    assert intervals._macro_f1(counts[None, :], pairs, 4)[0] == pytest.approx(direct)


def test_macro_f1_interval_is_that_of_resampling_rows():
    generator = np.random.default_rng(0)
    labels = generator.choice(["a", "b", "c"], size=120, p=[0.6, 0.3, 0.1])
    guesses = np.where(
        generator.random(120) < 0.8, labels, generator.choice(["a", "b", "c", "d"], size=120)
    )
    scores = []
    for _ in range(1000):
        chosen = generator.integers(0, 120, size=120)
        scores.append(macro_f1(labels[chosen].tolist(), {"prediction": guesses[chosen].tolist()}))
    ours = bootstrap_macro_f1(labels.tolist(), guesses.tolist(), seed=1)
    assert ours == pytest.approx(percentile_interval(scores), abs=0.03)


def test_macro_f1_with_many_classes_stays_in_chunks():
    labels = [str(i % 900) for i in range(5000)]
    guesses = [str((i * 7) % 900) for i in range(5000)]
    low, high = bootstrap_macro_f1(labels, guesses, seed=1)
    assert 0 <= low <= high < 0.1
