"""A search through the callback: one row a trial, and a NaN that Optuna drops is there."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

optuna = pytest.importorskip("optuna")

from harness.run_logger import RunLogger  # noqa: E402
from harness.training.optuna_study import OptunaCallback  # noqa: E402
from tests.metrics_rows import read_rows  # noqa: E402 - needs optuna


def objective(trial: Any) -> float:
    x = trial.suggest_float("x", -1, 1)
    trial.suggest_categorical("kind", ["a", "b"])
    if trial.number == 2:
        return math.nan
    if trial.number == 3:
        raise optuna.TrialPruned
    if trial.number == 4:
        raise ValueError("this one fails")
    return float(x**2)


def search(folder: Path, study: Any, trials: int) -> list[dict[str, Any]]:
    with RunLogger(run_dir=folder, experiment="exp-0001", run="run-01", token="t", seed=1) as log:
        study.optimize(
            objective,
            n_trials=trials,
            callbacks=[OptunaCallback(log, total_trials=8)],
            catch=ValueError,
        )
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_trial_is_a_row(tmp_path: Path) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    start, *trials, end = search(tmp_path, study, 6)
    assert (start["total_epochs"], end["status"]) == (8, "completed")
    assert [row["epoch"] for row in trials] == list(range(6))
    metrics = [row["metrics"] for row in trials]
    assert metrics[0]["objective"] == metrics[0]["best"] == metrics[0]["param/x"] ** 2
    assert "param/kind" not in metrics[0]
    assert metrics[2]["objective"] == metrics[4]["objective"] == "NaN"
    assert metrics[3]["pruned"] == metrics[4]["failed"] == 1
    assert read_rows(tmp_path / "metrics.jsonl").first_bad_step == 2
    again = search(tmp_path, study, 2)
    assert next(row for row in again if row["event"] == "attempt")["resumed_at"] == 6


def test_the_row_that_a_kill_lost_is_written_again(tmp_path: Path) -> None:
    """Optuna keeps a trial, then calls its callbacks: a kill between the two loses the row."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    search(tmp_path, study, 2)
    study.optimize(objective, n_trials=1)  # kept, and never told
    with RunLogger(
        run_dir=tmp_path, experiment="exp-0001", run="run-01", token="t", seed=1
    ) as log:
        OptunaCallback(log, total_trials=8, study=study)
    rows = [row for row in read_rows(tmp_path / "metrics.jsonl").effective if "epoch" in row]
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    assert rows[2]["metrics"]["param/x"] == study.trials[2].params["x"]
