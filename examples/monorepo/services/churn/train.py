"""Who comes again? A logistic regression, with numpy alone."""

import os

import numpy as np

from churn.features import inputs, read

EPOCHS, RATE = 30, 0.5


def main():
    from harness.run_logger import RunLogger

    rows = read(os.environ.get("HARNESS_TRAIN", "data/visits.train.csv"))
    x, y = inputs(rows), np.array([float(row["returns"]) for row in rows])
    with RunLogger.from_environment() as log:
        draw = np.random.default_rng(log.seed)
        weights = draw.normal(size=x.shape[1])
        log.start(total_epochs=EPOCHS, config={"rate": RATE})
        for epoch in range(EPOCHS):
            for batch in np.array_split(draw.permutation(len(y)), 8):
                p = 1 / (1 + np.exp(-x[batch] @ weights))
                weights -= RATE * x[batch].T @ (p - y[batch]) / len(batch)
            p = np.clip(1 / (1 + np.exp(-x @ weights)), 1e-9, 1 - 1e-9)
            log.epoch(epoch, {"loss": -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))})
        path = log.checkpoint_dir / "weights.npy"
        np.save(path, weights)
        log.checkpoint_saved(path, epoch=EPOCHS - 1, final=True)


if __name__ == "__main__":
    main()
