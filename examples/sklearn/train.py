"""Who leaves? A random forest on a table with texts and numbers."""

import csv
import os

import joblib
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction import DictVectorizer
from sklearn.pipeline import make_pipeline

TREES = 60
NUMBERS = ("months", "support_calls", "monthly_spend")


def read(path):
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


def inputs(rows):
    return [{"plan": row["plan"]} | {name: float(row[name]) for name in NUMBERS} for row in rows]


def main():
    from harness.run_logger import RunLogger

    rows = read(os.environ.get("HARNESS_TRAIN", "data/churn.train.csv"))
    with RunLogger.from_environment() as log:
        order = np.random.default_rng(log.seed).permutation(len(rows))
        own = [
            rows[place] for place in order[: len(rows) // 5]
        ]  # validation is hidden: a fifth to look at
        kept = [rows[place] for place in order[len(rows) // 5 :]]
        log.start(total_epochs=1, config={"trees": TREES})
        forest = RandomForestClassifier(TREES, min_samples_leaf=3, random_state=log.seed % 2**32)
        model = make_pipeline(DictVectorizer(sparse=False), forest)
        model.fit(inputs(kept), [row["left"] for row in kept])
        log.epoch(0, {"own_accuracy": model.score(inputs(own), [row["left"] for row in own])})
        path = log.checkpoint_dir / "model.joblib"
        joblib.dump(model, path)
        log.checkpoint_saved(path, epoch=0, final=True)


if __name__ == "__main__":
    main()
