"""Answers rows without labels with a checkpoint of train.py."""

import os

import joblib
import pandas as pd

from train import ANSWERS, inputs

rows = pd.read_csv(os.environ["HARNESS_INPUTS"])
model = joblib.load(os.environ["HARNESS_CHECKPOINT"])
p = model.predict_proba(inputs(rows))
answers = pd.DataFrame(p, columns=[f"p_{name}" for name in ANSWERS])
answers.insert(0, "id", rows["id"])
answers.to_csv(os.environ["HARNESS_PREDICTIONS"], index=False)
