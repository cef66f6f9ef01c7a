"""Answers rows without labels with a checkpoint of train.py."""

import csv
import os

import joblib

from train import inputs, read

rows = read(os.environ["HARNESS_INPUTS"])
model = joblib.load(os.environ["HARNESS_CHECKPOINT"])
with open(os.environ["HARNESS_PREDICTIONS"], "w", newline="") as stream:
    writer = csv.writer(stream)
    writer.writerow(["id", *(f"p_{name}" for name in model.classes_)])
    writer.writerows(
        [row["id"], *answer] for row, answer in zip(rows, model.predict_proba(inputs(rows)))
    )
