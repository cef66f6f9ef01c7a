"""How high is the wave? Optuna searches how a forest of boosted trees is grown, on rows of training alone."""

import csv
import os

import joblib
import numpy as np
import optuna
from sklearn.ensemble import GradientBoostingRegressor

TRIALS = 12


def read(path):
    """(ids, inputs, heights); the heights are missing in the rows that predict gets."""
    with open(path, newline="") as stream:
        rows = list(csv.DictReader(stream))
    x = np.array([[float(row["a"]), float(row["b"])] for row in rows])
    return (
        [row["id"] for row in rows],
        x,
        np.array([float(row["height"]) for row in rows if "height" in row]),
    )


def main():
    from harness.run_logger import RunLogger
    from harness.training.optuna_study import OptunaCallback

    _, x, y = read(os.environ.get("HARNESS_TRAIN", "data/waves.train.csv"))
    with RunLogger.from_environment() as log:
        seed = log.seed % 2**32
        order = np.random.default_rng(seed).permutation(len(y))
        own, kept = order[: len(y) // 5], order[len(y) // 5 :]  # validation is hidden

        def grown(parameters):
            model = GradientBoostingRegressor(random_state=seed, subsample=0.8, **parameters)
            return model.fit(x[kept], y[kept])

        def objective(trial):
            parameters = {
                "n_estimators": trial.suggest_int("n_estimators", 20, 150),
                "max_depth": trial.suggest_int("max_depth", 1, 5),
                "learning_rate": trial.suggest_float("learning_rate", 0.02, 0.5, log=True),
            }
            return float(np.abs(grown(parameters).predict(x[own]) - y[own]).mean())

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        study.optimize(objective, TRIALS, callbacks=[OptunaCallback(log, total_trials=TRIALS)])
        path = log.checkpoint_dir / "model.joblib"
        joblib.dump(grown(study.best_params), path)
        log.checkpoint_saved(path, epoch=TRIALS - 1, final=True)


if __name__ == "__main__":
    main()
