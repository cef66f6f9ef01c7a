"""The built-in scorers agree with scikit-learn, and run as the program that they are."""

import json
import math
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.metrics import METRICS, PerRow
from harness.evaluation import scorer_program
from harness.evaluation.metrics import accuracy, class_shares, log_loss, mae, mse
from harness.evaluation.metrics.log_loss import EPSILON
from harness.evaluation.scorer_program import mean

metrics = pytest.importorskip(
    "sklearn.metrics", reason="the reference for our metrics is scikit-learn"
)

CLASSES = ["0", "1", "2", "cat"]
pairs = st.lists(
    st.tuples(st.sampled_from(CLASSES), st.sampled_from(CLASSES)), min_size=1, max_size=60
)
numbers = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)
number_pairs = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=60)


def test_every_built_in_has_a_scorer():
    folder = Path(scorer_program.__file__).with_name("metrics")
    named = {metric.module for metric in METRICS.values()}
    assert named == {path.stem for path in folder.glob("*.py")} - {"__init__"}
    files = {
        name: import_module(f"harness.evaluation.metrics.{metric.module}")
        for name, metric in METRICS.items()
    }
    means = {PerRow.RIGHT_OR_WRONG, PerRow.VALUE}
    for name, metric in METRICS.items():
        assert hasattr(files[name], "rows") == (metric.per_row in means)
        assert hasattr(files[name], "influences") == (metric.per_row is PerRow.INFLUENCE)


@given(pairs)
def test_accuracy(rows):
    labels, guesses = map(list, zip(*rows, strict=True))
    ours = mean(accuracy.rows(labels, {"prediction": guesses}))
    assert ours == pytest.approx(metrics.accuracy_score(labels, guesses))


@given(pairs)
def test_f1_macro(rows):
    """Classes are those of the labels and of the guesses, as in scikit-learn."""
    labels, guesses = map(list, zip(*rows, strict=True))
    theirs = metrics.f1_score(labels, guesses, average="macro", zero_division=0)
    ours = class_shares.score(labels, {"prediction": guesses}, of="f1", average="macro")
    assert ours == pytest.approx(theirs)


@given(number_pairs)
def test_errors(rows):
    labels, guesses = map(list, zip(*rows, strict=True))
    predictions = {"prediction": guesses}
    assert mean(mse.rows(labels, predictions)) == pytest.approx(
        metrics.mean_squared_error(labels, guesses)
    )
    assert mean(mae.rows(labels, predictions)) == pytest.approx(
        metrics.mean_absolute_error(labels, guesses)
    )


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(2, 5), st.integers(0, 2**32 - 1), st.booleans())
def test_log_loss(n, k, seed, certain):
    generator = np.random.default_rng(seed)
    p = generator.dirichlet(np.ones(k), size=n)
    if certain:
        p = np.eye(k)[generator.integers(0, k, size=n)]
    labels = [str(label) for label in generator.integers(0, k, size=n)]
    columns = {f"p_{name}": p[:, name].tolist() for name in range(k)}
    theirs = metrics.log_loss(labels, p, labels=[str(name) for name in range(k)])
    assert mean(log_loss.rows(labels, columns)) == pytest.approx(theirs, rel=1e-6, abs=1e-12)


def test_log_loss_divides_by_the_sum_clips_and_takes_an_absent_class_as_impossible():
    columns = {"p_a": [0.4998], "p_b": [0.4998]}
    assert log_loss.rows(["a"], columns) == [pytest.approx(math.log(2))]
    assert log_loss.rows(["c"], columns) == [pytest.approx(-math.log(EPSILON))]
    assert log_loss.rows(["a"], {"p_a": [0.0], "p_b": [1.0]}) == [pytest.approx(36.04, abs=0.01)]


def test_a_sum_beyond_a_float_is_infinite_not_an_error():
    assert mean(mse.rows([1e200], {"prediction": [-1e200]})) == math.inf
    assert mean([1.7e308, 1.7e308]) == math.inf


def test_it_runs_alone_with_the_standard_library_only(tmp_path):
    program = tmp_path / "copy.py"
    program.write_bytes(Path(scorer_program.__file__).read_bytes())
    shutil.copy(mse.__file__, tmp_path / "metric.py")
    job = {
        "scorer": "mse",
        "script": None,
        "labels": [1.0, 2.0],
        "ids": ["x", "y"],
        "predictions": {"prediction": [1.0, 4.0]},
        "baseline": {"prediction": [1e200, 0.0]},
        "resamples": 0,
        "seed": 1,
        "options": {},
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    arguments = [
        sys.executable,
        "-I",
        "-S",
        str(program),
        str(tmp_path / "job.json"),
        str(tmp_path / "result.json"),
    ]
    subprocess.run(arguments, check=True, env={}, cwd=tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result == {"value": 2.0, "rows": [0.0, 4.0], "baseline": "Infinity", "resampled": None}
