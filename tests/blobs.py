"""The plan and the tables of a small, ordinary project, for the tests of several rooms."""

from pathlib import Path

import numpy as np

from harness.artifacts.tables import write_table

PLAN = """\
---
schema: 1
name: blobs
workflow: classical-ml
objective: Tell two blobs apart
data:
  train: data/train.npz
  validation: data/validation.npz
  held_out: {path: data/held_out.npz, inputs: [x], label: y, id: row}
oracle:
  metric: accuracy
  direction: maximize
  scorer: accuracy
  predict: python predict.py
  tiers: {must: 0.90, should: 0.92}
  seeds: 3
  queries: 20
training: {entry: python train.py}
budget: {experiments: 3, run_minutes: 1, total_minutes: 5}
---

# Blobs
"""


def table(rows: int, seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {"x": generator.normal(size=(rows, 2)), "y": generator.integers(0, 2, rows), "row": np.arange(rows)}


def write_tables(root: Path) -> None:
    for seed, (name, rows) in enumerate([("train", 60), ("validation", 30), ("held_out", 40)]):
        write_table(root / f"data/{name}.npz", table(rows, seed))
