"""Columns, parts of columns and pairs of columns that tell the label.

A column that tells the label nearly by itself is usually the label in another form, or made after
it (Kaufman et al., "Leakage in data mining", 2012). A predictor that knows one column is fitted on
one half of the rows and tried on the other: the answer of the nearest value, or the commonest (the
mean) of the same value where values are few or text. Its skill is the share of the trivial
predictor's error that it removes, as in the predictive power score: 1 is perfect, 0 is none.

The label may stand in the last bits or digits of a column that says nothing as a number, or in two
columns together (their sum, difference, product, exclusive or, or the cells of both): the same
predictor is tried on these.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.plans.bit_planes import decimals
from harness.plans.contamination import Column, Columns
from harness.plans.woven import REFUSED, Woven, woven

ALARM = 0.97
"""Skill from which one column alone is reported. Iris's petal width, honestly, has about 0.93."""
FEW_VALUES = 32
LEAST_ERRORS = 10
"""Of the trivial predictor on the tried rows: fewer a column removes by chance."""
LEAST_ROWS = 60
MOST_ROWS = 20_000
MOST_COLUMNS = 2_000
"""Columns, or places of a wider one, that are looked at; some seconds of one core."""
_FEW_CLASSES = 50

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Leak:
    column: str
    """As "x", or "x[3]" for one place of a wider column, or what was made of columns."""
    skill: float
    made: bool = False
    """Whether `column` says what was made of columns."""

    @property
    def words(self) -> str:
        if self.made:
            return f"{self.column[0].upper()}{self.column[1:]}"
        return f"The column {self.column!r} alone"


def telling_columns(columns: Columns, inputs: Sequence[str], label: str) -> list[Leak]:
    """The columns of `inputs` with a skill of at least ALARM, best first; none with fewer than
    LEAST_ROWS rows, or where the task has one column only."""
    answers = columns[label]
    if (
        len(answers) < LEAST_ROWS
        or sum(columns[name][:1].size for name in inputs) < 2
        or answers.ndim != 1
    ):
        return []
    order = np.random.default_rng(0).permutation(len(answers))[:MOST_ROWS]
    target, classes = _target(answers[order])
    leaks = []
    for name, values in _singles(columns, inputs, order):
        skill = _skill(values, target, classes)
        if skill >= ALARM:
            leaks.append(Leak(column=name, skill=skill))
    return sorted(leaks, key=lambda leak: -leak.skill)


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
    """The mean of `weights`, (half, k), over the known rows with a tried row's value: (n - half,
    k)."""
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


MOST_PAIRED = 16
"""Columns that are looked at two by two."""
MOST_TRIED = 2_000
"""Rows for these looks, of which there are many."""
MOST_WOVEN = 256
"""Columns whose bits are looked at together."""
_MASKS = (1, 3, 15, 255)
_MOST_DECIMALS = 15
_CELLS = 4


def telling_parts(columns: Columns, inputs: Sequence[str], label: str) -> list[Leak]:
    """Last bits and digits of a column, and pairs of columns, that tell the label where neither
    column does alone; best first."""
    answers = columns[label]
    if len(answers) < LEAST_ROWS or answers.ndim != 1:
        return []
    order = np.random.default_rng(0).permutation(len(answers))[:MOST_TRIED]
    target, classes = _target(answers[order])
    singles = [
        (name, values)
        for name, values in _singles(columns, inputs, order)
        if values.dtype.kind in "biuf"
    ]
    leaks = []
    if classes:
        for name, values in singles:
            found = _best(_ends(name, values), target, classes)
            if found is not None and _skill(values, target, classes) < ALARM:
                leaks.append(found)
    quiet = [
        (name, values)
        for name, values in singles
        if len(np.unique(values)) > 1 and _skill(values, target, classes) < ALARM
    ]
    for one, other in combinations(quiet[:MOST_PAIRED], 2):
        found = _best(_pairs(one, other), target, classes)
        if found is not None:
            leaks.append(found)
    if not leaks:
        leaks += [
            _leak(one)
            for one in _woven(columns, inputs, label)
            if (one.skill < REFUSED if one.fine else one.skill >= ALARM)
        ]
    return sorted(leaks, key=lambda leak: -leak.skill)


def mantissa_leaks(columns: Columns, inputs: Sequence[str], label: str) -> list[Leak]:
    """Columns of measured numbers whose last bits tell the class, which they do not as numbers;
    and bits, digits or ways of writing, of any columns together, that do: nothing that is measured
    does that."""
    answers = columns[label]
    if len(answers) < LEAST_ROWS or answers.ndim != 1:
        return []
    order = np.random.default_rng(0).permutation(len(answers))[:MOST_TRIED]
    target, classes = _target(answers[order])
    found = [
        _best(_bits(name, values), target, classes)
        for name, values in _singles(columns, inputs, order)
        if classes
        and values.dtype.kind == "f"
        and decimals(values) is None
        and _skill(values, target, classes) < ALARM
    ]
    leaks = [leak for leak in found if leak is not None]
    return (
        leaks
        or [
            _leak(one)
            for one in _woven(columns, inputs, label)
            if one.fine and one.skill >= REFUSED
        ][:1]
    )


def _woven(columns: Columns, inputs: Sequence[str], label: str) -> list[Woven]:
    """Of the columns that do not tell the label as they are."""
    order = np.random.default_rng(0).permutation(len(columns[label]))[:MOST_ROWS]
    target, classes = _target(columns[label][order])
    quiet = [
        (name, values)
        for name, values in _singles(columns, inputs, order)[:MOST_WOVEN]
        if _skill(values[:MOST_TRIED], target[:MOST_TRIED], classes) < ALARM
    ]
    return woven(quiet, target, classes)


def _leak(one: Woven) -> Leak:
    return Leak(column=one.words, skill=one.skill, made=True)


def _best(tried: Iterator[tuple[str, Column]], target: Numbers, classes: int) -> Leak | None:
    leaks = [
        Leak(column=what, skill=_skill(values, target, classes), made=True)
        for what, values in tried
    ]
    best = max(leaks, key=lambda leak: leak.skill, default=None)
    return best if best is not None and best.skill >= ALARM else None


def _ends(name: str, values: Column) -> Iterator[tuple[str, Column]]:
    """The last bits of whole numbers and of mantissas, and the last decimals."""
    yield from _bits(name, values)
    if values.dtype.kind == "f":
        decimals = _most_decimals(values.tolist())
        if not 0 < decimals <= _MOST_DECIMALS:
            return
        whole = np.rint(values.astype(np.float64) * 10.0**decimals)
    elif values.dtype.kind in "iu":
        whole = values.astype(np.float64)
    else:
        return
    for digits in (1, 2):
        yield f"the last {digits} digits of {name!r}", np.mod(np.abs(whole), 10**digits)


def _bits(name: str, values: Column) -> Iterator[tuple[str, Column]]:
    bits: Column
    if values.dtype.kind in "iu":
        bits = values.astype(np.int64)
    elif values.dtype.kind == "f":
        single = values.astype(np.float32)
        exact = np.array_equal(single.astype(np.float64), values.astype(np.float64))
        bits = single.view(np.uint32) if exact else values.astype(np.float64).view(np.uint64)
    else:
        return
    for mask in _MASKS:
        yield f"the last {mask.bit_length()} bits of {name!r}", bits & mask


def _most_decimals(values: list[float]) -> int:
    """Of all values; more than `_MOST_DECIMALS` as soon as one has more."""
    most = 0
    for value in values:
        most = max(most, _decimals(value))
        if most > _MOST_DECIMALS:
            break
    return most


def _decimals(value: float) -> int:
    text = repr(value)
    return len(text.partition(".")[2]) if "e" not in text else _MOST_DECIMALS + 1


def _pairs(one: tuple[str, Column], other: tuple[str, Column]) -> Iterator[tuple[str, Column]]:
    (first, a), (second, b) = one, other
    x, y = a.astype(np.float64), b.astype(np.float64)
    yield f"the sum of {first!r} and {second!r}", _steady(x + y)
    yield f"the difference of {first!r} and {second!r}", _steady(x - y)
    yield f"the product of {first!r} and {second!r}", _steady(x * y)
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        yield (
            f"the exclusive or of {first!r} and {second!r}",
            np.bitwise_xor(a.astype(np.int64), b.astype(np.int64)),
        )
    # What a tree of depth two can tell of them.
    yield f"the pair {first!r} and {second!r}", _cells(x) * FEW_VALUES + _cells(y)


def _steady(values: Numbers) -> Numbers:
    """Without the last digits, where sums differ that are meant to be equal."""
    most = float(np.abs(values).max())
    return np.round(values, 9 - math.ceil(math.log10(most))) if 0 < most < np.inf else values


def _cells(values: Numbers) -> NDArray[np.int64]:
    kinds, coded = np.unique(values, return_inverse=True)
    if len(kinds) <= _CELLS:
        return coded.astype(np.int64)
    edges = np.quantile(values, np.arange(1, _CELLS) / _CELLS)
    return np.searchsorted(edges, values).astype(np.int64)


_MOST_KINDS = 64


def id_tells(columns: Columns, id_column: str | None, label: str) -> Leak | None:
    """What of the ids tells the class. A table that is sorted by its label is none: its ids say no
    more than the order of its rows."""
    if id_column is None or id_column not in columns:
        return None
    ids, answers = columns[id_column], columns[label]
    if ids.ndim != 1 or answers.ndim != 1 or len(answers) < LEAST_ROWS:
        return None
    order = np.random.default_rng(0).permutation(len(answers))[:MOST_ROWS]
    target, classes = _target(answers[order])
    if not classes:
        return None
    return _best(_of_ids(ids[order], target, classes), target, classes)


def _of_ids(ids: Column, target: Numbers, classes: int) -> Iterator[tuple[str, Column]]:
    if ids.dtype.kind in "iu":
        for number in range(2, 17):
            yield f"the ids' rest by {number}", ids % number
        runs = 1 + int((np.diff(target[np.argsort(ids, kind="stable")]) != 0).sum())
        if runs > 3 * classes:
            yield "the ids' number", ids.astype(np.float64)
        return
    texts = ids.astype(str)
    cut = [(f"the first {n} characters of the ids", texts.astype(f"U{n}")) for n in range(1, 9)]
    for n in range(1, 5):
        ends = np.array([text[-n:] for text in texts.tolist()])
        cut.append((f"the last {n} characters of the ids", ends))
    letters = np.array(["".join(filter(str.isalpha, text)) for text in texts.tolist()])
    cut.append(("the letters of the ids", letters))
    for what, values in cut:
        if len(np.unique(values)) <= _MOST_KINDS:
            yield what, values
