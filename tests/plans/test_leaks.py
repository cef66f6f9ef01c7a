import numpy as np
import pytest

from harness.plans.data_review import telling_columns


def table(seed, n=400, width=6):
    draw = np.random.default_rng(seed)
    return {f"c{i}": draw.normal(size=n) for i in range(width)}


def names(columns, label="y"):
    return [
        leak.column
        for leak in telling_columns(columns, [name for name in columns if name != label], label)
    ]


@pytest.mark.parametrize("classes", [2, 10])
def test_a_label_in_another_form_is_found(classes):
    columns = table(1)
    columns["y"] = np.random.default_rng(2).integers(0, classes, 400)
    columns["code"] = np.array([f"k{value}" for value in columns["y"]])
    columns["scaled"] = columns["y"] * 3.7 - 1 + 0.001 * columns["c0"]
    assert sorted(names(columns)) == ["code", "scaled"]


def test_a_measured_label_and_one_place_of_a_wide_column():
    columns = table(1)
    columns["y"] = np.random.default_rng(2).normal(size=400)
    wide = np.random.default_rng(3).normal(size=(400, 5))
    wide[:, 3] = np.tanh(columns["y"])
    columns["w"] = wide
    assert names(columns) == ["w[3]"]


@pytest.mark.parametrize("kind", ["classes", "rare", "numbers"])
def test_no_false_alarm_on_columns_that_say_nothing(kind):
    """40 tables of 30 columns: 1,200 chances."""
    for seed in range(40):
        columns = table(seed, n=80, width=30)
        draw = np.random.default_rng(1000 + seed)
        answers = {
            "classes": draw.integers(0, 3, 80),
            "rare": draw.random(80) < 0.05,
            "numbers": draw.normal(size=80),
        }
        columns["y"] = answers[kind]
        assert names(columns) == []


def test_a_strong_honest_feature_is_no_leak():
    columns = table(1)
    columns["y"] = (columns["c0"] + 0.3 * columns["c1"] > 0).astype(int)
    assert names(columns) == []


def test_one_column_alone_is_the_task_and_few_rows_say_nothing():
    columns = {"x": np.arange(100.0), "y": np.arange(100) > 50}
    assert names(columns) == []
    few = {"x": np.arange(40.0), "z": np.ones(40), "y": np.arange(40) > 20}
    assert names(few) == []
