"""One column that tells the label nearly by itself: usually the label in another form, or made
after it.

A predictor that knows one column only is fitted on one half of the rows and tried on the other: the
answer of the nearest value, or the commonest (the mean) of the same value where values are few or
text. Its skill is the share of the trivial predictor's error that it removes: 1 is perfect, 0 is
none; on a column that says nothing it is about 0 or less. Source: Kaufman et al., "Leakage in data
mining" (2012); the measure is that of the predictive power score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.plans.data_rows import Column, Columns

ALARM = 0.97
"""Skill from which one column alone is reported. Petal width of Iris has 0.93 or so: honest, and
near."""
FEW_VALUES = 32
LEAST_ERRORS = 10
"""Of the trivial predictor on the rows that are tried; with fewer a column removes them all by
chance."""
LEAST_ROWS = 60
MOST_ROWS = 20_000
MOST_COLUMNS = 2_000
"""Columns, or places of a wider one, that are looked at; some seconds of one core."""
_FEW_CLASSES = 50

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Leak:
    column: str
    """As "x", or "x[3]" for one place of a wider column."""
    skill: float


def telling_columns(columns: Columns, inputs: Sequence[str], label: str) -> list[Leak]:
    """The columns of `inputs` with a skill of at least ALARM, best first.

    Empty with fewer than LEAST_ROWS rows, and where there is one column only: then it is the task.
    """
    answers = columns[label]
    if (
        len(answers) < LEAST_ROWS
        or sum(columns[name][:1].size for name in inputs) < 2
        or answers.ndim != 1
    ):
        return []
    order = np.random.default_rng(0).permutation(len(answers))[:MOST_ROWS]
    target, classes = _target(answers[order])
    found = []
    for name, values in _singles(columns, inputs, order):
        skill = _skill(values, target, classes)
        if skill >= ALARM:
            found.append(Leak(column=name, skill=skill))
    return sorted(found, key=lambda leak: -leak.skill)


def _singles(
    columns: Columns, inputs: Sequence[str], order: NDArray[np.int64]
) -> list[tuple[str, Column]]:
    singles: list[tuple[str, Column]] = []
    for name in inputs:
        flat = columns[name][order].reshape(len(order), -1)
        wide = columns[name].ndim > 1
        for place in range(min(flat.shape[1], MOST_COLUMNS - len(singles))):
            singles.append((f"{name}[{place}]" if wide else name, flat[:, place]))
    return singles


def _target(answers: Column) -> tuple[Numbers, int]:
    """(class codes, their number), or (numbers, 0) where the label is a measured quantity."""
    kinds, codes = np.unique(_sortable(answers), return_inverse=True)
    if answers.dtype.kind == "f" and (
        len(kinds) > _FEW_CLASSES or not np.all(kinds == np.round(kinds))
    ):
        return answers.astype(np.float64), 0
    if answers.dtype.kind in "iu" and len(kinds) > _FEW_CLASSES:
        return answers.astype(np.float64), 0
    return codes.astype(np.float64), len(kinds)


def _skill(values: Column, target: Numbers, classes: int) -> float:
    half = len(target) // 2
    known, asked = target[:half], target[half:]
    weights = np.eye(classes)[known.astype(np.int64)] if classes else known[:, None]
    votes = _votes(values, half, weights)
    if classes:
        usual = weights.sum(0).argmax()
        errors = asked != usual
        if int(errors.sum()) < LEAST_ERRORS:
            return 0.0
        return 1 - float((votes.argmax(1) != asked).mean()) / float(errors.mean())
    spread = float(((asked - known.mean()) ** 2).mean())
    return 1 - float(((votes[:, 0] - asked) ** 2).mean()) / spread if spread > 0 else 0.0


def _votes(values: Column, half: int, weights: Numbers) -> Numbers:
    """The mean of `weights`, (half, k), over the known rows that a tried row's value is like: (n -
    half, k)."""
    kinds, codes = np.unique(_sortable(values), return_inverse=True)
    if values.dtype.kind in "biuf" and len(kinds) > FEW_VALUES:
        known, asked = values[:half].astype(np.float64), values[half:].astype(np.float64)
        order = np.argsort(known, kind="stable")
        right = np.clip(np.searchsorted(known[order], asked), 1, half - 1)
        nearer = asked - known[order][right - 1] <= known[order][right] - asked
        return weights[order][np.where(nearer, right - 1, right)]
    counts = np.bincount(codes[:half], minlength=len(kinds))
    sums = np.zeros((len(kinds), weights.shape[1]))
    np.add.at(sums, codes[:half], weights)
    means: Numbers = np.where(
        counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], weights.mean(0)
    )
    return means[codes[half:]]


def _sortable(values: Column) -> NDArray[Any]:
    return values.astype(str) if values.dtype.kind == "O" else values
