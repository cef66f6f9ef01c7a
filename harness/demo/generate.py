"""Draw MNIST-1D tables, in a process of its own: the generator seeds global random state.

MNIST-1D: Greydanus and Kobak, "Scaling down deep learning with MNIST-1D" (ICML 2024), package
`mnist1d`. Run as `python -m harness.demo.generate FOLDER TRAIN_SEED VALIDATION_SEED HELD_OUT_SEED`.
"""

import sys
from pathlib import Path

import numpy as np
from mnist1d.data import get_dataset_args, make_dataset

ROWS = {"train": 4000, "validation": 1000, "held_out": 1000}


def draw(path: Path, *, seed: int, rows: int) -> None:
    """Write `rows` fresh examples: x (rows, 40) float32, y and id (rows,) int64; y is in 0..9."""
    arguments = get_dataset_args()
    arguments.seed, arguments.num_samples, arguments.train_split = seed, rows, 1.0
    table = make_dataset(arguments)
    x, y = table["x"].astype(np.float32), table["y"].astype(np.int64)
    np.savez(path, x=x, y=y, id=np.arange(rows, dtype=np.int64))


def main(words: list[str]) -> None:
    folder = Path(words[0])
    for (name, rows), seed in zip(ROWS.items(), words[1:], strict=True):
        draw(folder / f"{name}.npz", seed=int(seed), rows=rows)


if __name__ == "__main__":
    main(sys.argv[1:])
