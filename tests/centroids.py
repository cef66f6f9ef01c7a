"""Training and predict programs that need a moment and no torch, for the tests that run them as
agents' code. Each seed trains on a quarter of the rows: two that answer 200 rows alike are rare."""

TRAIN = """\
import numpy as np

from harness.run_logger import RunLogger

with RunLogger.from_environment() as log:
    table = np.load("data/train.npz")
    rows = np.random.default_rng(log.seed).choice(len(table["y"]), len(table["y"]) // 4, replace=False)
    x, y = table["x"][rows], table["y"][rows]
    log.start(total_epochs=1)
    centroids = np.stack([x[y == label].mean(0) for label in np.unique(y)])
    log.epoch(0, {"loss": float(((x - centroids[y]) ** 2).mean())})
    path = log.checkpoint_dir / "centroids.npy"
    np.save(path, centroids)
    log.checkpoint_saved(path, epoch=0, final=True)
"""

PREDICT = """\
import os

import numpy as np

centroids = np.load(os.environ["HARNESS_CHECKPOINT"])
table = np.load(os.environ["HARNESS_INPUTS"])
nearest = ((table["x"][:, None] - centroids[None]) ** 2).sum(-1).argmin(1)
np.savez(os.environ["HARNESS_PREDICTIONS"], id=table["id"], prediction=nearest)
"""


def slow_train(seconds: float) -> str:
    """TRAIN that sleeps between its start and its only epoch."""
    start = "    log.start(total_epochs=1)\n"
    return TRAIN.replace(start, f"{start}    import time; time.sleep({seconds})\n")
