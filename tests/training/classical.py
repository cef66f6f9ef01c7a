"""A search over a tree's parameters with Optuna, then cross-validation of the best, both going on
where they were."""

import json

import numpy as np
import optuna
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier

from harness.domain.statuses import Direction
from harness.training.cadence import Goal
from harness.training.cross_validation import CrossValidation
from harness.training.optuna_study import Search

GOAL = Goal(metric="accuracy", direction=Direction.MAXIMIZE)
TRIALS, FOLDS = 14, 4
optuna.logging.set_verbosity(optuna.logging.ERROR)


def data():
    drawn = np.random.default_rng(3)
    x = drawn.normal(size=(200, 5))
    return x, (x[:, 0] + x[:, 1] * x[:, 2] + drawn.normal(scale=0.3, size=200) > 0).astype(int)


def accuracy(fitted, x, y):
    return accuracy_score(y, fitted.predict(x))


def search(log, folder):
    x, y = data()

    def objective(trial):
        depth, leaf = (
            trial.suggest_int("depth", 1, 12),
            trial.suggest_float("leaf", 0.001, 0.2, log=True),
        )
        model = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=leaf, random_state=0).fit(
            x[:150], y[:150]
        )
        return accuracy(model, x[150:], y[150:])

    found = Search(log, seed=5, goal=GOAL)
    log.start(TRIALS, resumed_at=found.first)
    study = found.run(objective, trials=TRIALS)
    ended = [(trial.params, trial.value) for trial in study.trials if trial.value is not None]
    assert len({json.dumps(params) for params, _ in ended}) == TRIALS, "a draw came twice"
    (folder / "digest.txt").write_text(json.dumps([ended, study.best_params]))


def folds(log, folder):
    x, y = data()
    model = DecisionTreeClassifier(max_depth=4, random_state=0)
    made = CrossValidation(
        log, model, x, y, splits=KFold(FOLDS).split(x), score=accuracy, goal=GOAL
    )
    log.start(FOLDS, resumed_at=made.first)
    found = made.run()
    (folder / "digest.txt").write_text(
        json.dumps([(fold.fold, fold.value, fold.rows) for fold in found])
    )
