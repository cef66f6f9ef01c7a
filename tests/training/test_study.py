"""What a killed search left: trials that run for ever, a torn journal, a dead writer's lock; folds
of other data."""

import json

import pytest

optuna = pytest.importorskip("optuna")
pytest.importorskip("sklearn")

from optuna.trial import TrialState  # noqa: E402 - needs the library that may be missing
from sklearn.model_selection import KFold  # noqa: E402
from sklearn.tree import DecisionTreeClassifier  # noqa: E402

from harness.errors import UsageError  # noqa: E402
from harness.run_logger import RunLogger  # noqa: E402
from harness.training.cross_validation import CrossValidation  # noqa: E402
from harness.training.optuna_study import Search  # noqa: E402
from tests.metrics_rows import read_rows  # noqa: E402
from tests.training.classical import GOAL, accuracy, data  # noqa: E402


def log_in(folder):
    return RunLogger(run_dir=folder, experiment="exp-0001", run="run-01", token="t", seed=7)


def drawn(trial):
    return trial.suggest_float("x", 0, 1)


def draws(study):
    return [trial.params["x"] for trial in study.trials if trial.state is TrialState.COMPLETE]


def test_what_a_killed_search_left_is_fixed(tmp_path):
    whole = draws(Search(log_in(tmp_path / "whole"), seed=1, goal=GOAL).run(drawn, trials=6))
    first = Search(log_in(tmp_path), seed=1, goal=GOAL)
    first.run(drawn, trials=3)
    first.study.sampler = optuna.samplers.TPESampler(seed=1 + 3)
    assert drawn(first.study.ask()) == whole[3], "the trial that is killed had drawn already"
    journal = tmp_path / "checkpoints/study.journal"
    with journal.open("ab") as stream:
        stream.write(b'{"op_code": 4, "wor')
    (tmp_path / "checkpoints/study.journal.lock").symlink_to(journal)
    again = Search(log_in(tmp_path), seed=1, goal=GOAL)
    assert again.first == 3
    assert draws(again.run(drawn, trials=6)) == whole
    assert [trial.state.name for trial in again.study.trials] == ["COMPLETE"] * 3 + ["FAIL"] + [
        "COMPLETE"
    ] * 3
    assert all(json.loads(line) for line in journal.read_text().splitlines())
    assert len(set(whole)) == 6


def test_a_search_that_is_over_does_nothing_more(tmp_path):
    study = Search(log_in(tmp_path), seed=1, goal=GOAL).run(drawn, trials=2)
    again = Search(log_in(tmp_path), seed=1, goal=GOAL)
    assert draws(again.run(drawn, trials=2)) == draws(study)
    assert again.study.best_value == max(draws(study))


def test_pruned_and_nan_trials_count_as_ended(tmp_path):
    def objective(trial):
        if trial.number == 0:
            raise optuna.TrialPruned
        return float("nan") if trial.number == 1 else 0.5

    log = log_in(tmp_path)
    Search(log, seed=1, goal=GOAL).run(objective, trials=3)
    rows = [
        row["metrics"]
        for row in read_rows(tmp_path / "metrics.jsonl").effective
        if row["event"] == "epoch"
    ]
    assert rows[0] == {"pruned": 1}
    assert str(rows[1]["accuracy"]) == "nan"
    assert Search(log_in(tmp_path), seed=1, goal=GOAL).first == 3


def test_folds_are_kept_and_those_of_other_data_or_parameters_are_not_taken(tmp_path):
    x, y = data()

    def folds(depth=3, rows=200, **more):
        model = DecisionTreeClassifier(max_depth=depth, random_state=0)
        splits = more.pop("splits", None) or KFold(4).split(x[:rows])
        return CrossValidation(
            log_in(tmp_path), model, x[:rows], y[:rows], splits=splits, score=accuracy, goal=GOAL
        )

    done = folds().run()
    assert (folds().first, folds(depth=4).first, folds(rows=100).first) == (4, 0, 0)
    assert folds().run() == done
    done[1].path.write_bytes(b"other bytes")
    assert folds().first == 1
    assert folds().run() == done
    best = max(done, key=lambda fold: fold.value)
    final = [row for row in read_rows(tmp_path / "metrics.jsonl").rows if row.get("final")][-1]
    assert tmp_path / final["path"] == best.path
    with pytest.raises(UsageError, match="A fold without rows"):
        folds(splits=[([0, 1], [])])
