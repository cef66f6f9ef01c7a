"""Answers beams without their strength with a checkpoint of train.py."""

import csv
import os

import torch

from beam import network, read

ids, x, _ = read(os.environ["HARNESS_INPUTS"])
model = network()
model.load_state_dict(torch.load(os.environ["HARNESS_CHECKPOINT"], weights_only=True))
with torch.no_grad():
    strengths = model(x)[:, 0].tolist()
with open(os.environ["HARNESS_PREDICTIONS"], "w", newline="") as stream:
    writer = csv.writer(stream)
    writer.writerow(["id", "prediction"])
    writer.writerows(zip(ids, strengths))
