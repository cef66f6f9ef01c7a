"""Small data that real models train on: MNIST-1D, scikit-learn's digits, the characters of this
repository's licence.

MNIST-1D: Greydanus and Kobak, "Scaling down deep learning with MNIST-1D" (ICML 2024), package
`mnist1d`.
"""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from mnist1d.data import get_dataset_args, make_dataset
from sklearn.datasets import load_diabetes, load_digits
from torch import Tensor

CONTEXT = 24
_SAMPLES = 1600
_TEXT = Path(__file__).resolve().parents[2] / "LICENSE"


class Split(NamedTuple):
    x: Tensor
    y: Tensor


class Data(NamedTuple):
    train: Split
    later: Split
    outputs: int
    """Classes, or 1 for a regression."""


@lru_cache(maxsize=4)
def load(task: str) -> Data:
    """`task` is cnn, digits, chars or regression; the split is the same for every seed."""
    return {"cnn": _mnist1d, "digits": _digits, "chars": _chars, "regression": _regression}[task]()


def _mnist1d() -> Data:
    args = get_dataset_args()
    args.num_samples = _SAMPLES
    made = make_dataset(args)
    x = torch.tensor(np.concatenate([made["x"], made["x_test"]]), dtype=torch.float32)[:, None, :]
    y = torch.tensor(np.concatenate([made["y"], made["y_test"]]), dtype=torch.long)
    return _split(x, y, 10)


def _digits() -> Data:
    digits = load_digits()
    return _split(
        torch.tensor(digits.data / 16.0, dtype=torch.float32),
        torch.tensor(digits.target, dtype=torch.long),
        10,
    )


def _regression() -> Data:
    diabetes = load_diabetes()
    return _split(
        torch.tensor(diabetes.data * 20.0, dtype=torch.float32),
        torch.tensor(diabetes.target[:, None] / 50.0, dtype=torch.float32),
        1,
    )


def _chars() -> Data:
    text = " ".join(_TEXT.read_text("utf-8").split())
    letters = sorted(set(text))
    codes = torch.tensor([letters.index(letter) for letter in text])
    windows = codes.unfold(0, CONTEXT + 1, 3)
    cut = int(0.85 * len(windows))  # in order: windows overlap, so that a random split would leak
    train, later = windows[:cut], windows[cut + CONTEXT // 3 + 1 :][::2]
    return Data(
        Split(train[:, :-1], train[:, 1:]), Split(later[:, :-1], later[:, 1:]), len(letters)
    )


def _split(x: Tensor, y: Tensor, outputs: int) -> Data:
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(7))
    cut = int(0.75 * len(x))
    return Data(
        Split(x[order[:cut]], y[order[:cut]]), Split(x[order[cut:]], y[order[cut:]]), outputs
    )
