"""What a person should know about a plan's tables before approving them; nothing here forbids an
approval.

A column that tells the label nearly by itself is usually the label in another form, or made after
it (Kaufman et al., "Leakage in data mining", 2012). A predictor that knows one column is fitted on
one half of the rows and tried on the other: the answer of the nearest value, or the commonest (the
mean) of the same value where values are few or text. Its skill is the share of the trivial
predictor's error that it removes, as in the predictive power score: 1 is perfect, 0 is none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.domain.findings import Finding
from harness.plans.contamination import (
    SHOWN,
    Column,
    Columns,
    Near,
    Shared,
    near_duplicates,
    near_texts,
    shared_rows,
    text_columns,
)

ORDER = ("train", "validation", "held_out")
USUAL = 2.0
"""Near-duplicates are reported from this multiple of those among the training rows."""


def data_findings(
    tables: Mapping[str, Columns],
    inputs: Sequence[str],
    label: str,
    *,
    secret: frozenset[str] = frozenset(),
) -> list[Finding]:
    """Contamination between the splits in `tables` (by their names in ORDER), and columns that tell
    the label. Rows of splits in `secret` are counted and not named: an agent may be reading."""
    findings: list[Finding] = []
    for first, second in combinations([name for name in ORDER if name in tables], 2):
        named = not {first, second} & secret
        findings += _between(tables[first], tables[second], inputs, label, (first, second), named)
    return [*findings, *_leaks(tables, inputs, label)]


def contamination(
    earlier: Columns, later: Columns, inputs: Sequence[str], label: str
) -> dict[str, float]:
    """What a gate judges of two frozen splits: {rows, share, repeats, expected} of `Shared`, and,
    where numbers can come near, {near, near_repeats, near_expected} of near-duplicates and
    copies."""
    shared = shared_rows(earlier, later, inputs, label)
    near = near_duplicates(earlier, later, inputs)
    measured = {
        "rows": len(shared.rows),
        "share": shared.share,
        "repeats": shared.repeats,
        "expected": shared.expected,
    }
    if near is not None:
        measured |= {
            "near": near.alike,
            "near_repeats": near.alike_usual,
            "near_expected": near.alike_expected,
        }
    return measured


def _between(
    earlier: Columns,
    later: Columns,
    inputs: Sequence[str],
    label: str,
    names: tuple[str, str],
    named: bool,
) -> Iterator[Finding]:
    shared = shared_rows(earlier, later, inputs, label)
    if shared.rows:
        yield _overlap(shared, names, named)
    near = near_duplicates(earlier, later, inputs)
    if near is not None and near.share > USUAL * near.usual:
        yield _near(near, names, named)
    exact = set(shared.rows)
    for column in text_columns(inputs, dict(later)):
        texts = near_texts(earlier[column], later[column])
        pairs = [pair for pair in zip(texts.rows, texts.first, strict=True) if pair[0] not in exact]
        if pairs:
            first, second = names
            yield Finding(
                "splits_near_duplicates",
                f"{len(pairs)} of {texts.looked_at} texts of {second} in the column {column!r} are"
                " nearly a text of"
                f" {first}{_pairs([a for a, _ in pairs], [b for _, b in pairs], names, named)}.",
                f"Remove them from {first}, or explain in the plan's text why they are no copies.",
                {
                    "first": first,
                    "second": second,
                    "column": column,
                    "rows": len(pairs),
                    "of": texts.looked_at,
                },
            )


def _overlap(shared: Shared, names: tuple[str, str], named: bool) -> Finding:
    first, second = names
    twins = f" ({shared.repeats:.1%} of the rows of {first} have a twin there)"
    usual = twins if shared.repeats else ""
    return Finding(
        "splits_overlap",
        f"{len(shared.rows)} rows of {second} ({shared.share:.1%}) have the inputs of a row in"
        f" {first}, {shared.with_label} of them with the same"
        f" label{usual}{_pairs(shared.rows, shared.first, names, named)}.",
        f"Remove them from {first}, or explain in the plan's text why they repeat.",
        {
            "first": first,
            "second": second,
            "rows": len(shared.rows),
            "share": shared.share,
            "same_label": shared.with_label,
            "repeats": shared.repeats,
        },
    )


def _near(near: Near, names: tuple[str, str], named: bool) -> Finding:
    first, second = names
    return Finding(
        "splits_near_duplicates",
        f"{len(near.rows)} of {near.looked_at} rows of {second} are nearly one of {near.of} rows of"
        f" {first} (within the rows of {first}:"
        f" {near.usual:.1%}){_pairs(near.rows, near.first, names, named)}.",
        f"Remove them from {first}, or explain in the plan's text why they are no copies.",
        {
            "first": first,
            "second": second,
            "rows": len(near.rows),
            "of": near.looked_at,
            "usual": near.usual,
        },
    )


def _pairs(rows: Sequence[int], first: Sequence[int], names: tuple[str, str], named: bool) -> str:
    """ ": row 3 = row 17 of train, ..."; nothing when rows are not to be named."""
    if not named:
        return ""
    shown = ", ".join(
        f"row {row} = row {other} of {names[0]}"
        for row, other in list(zip(rows, first, strict=True))[:SHOWN]
    )
    return f": {shown}" + (", ..." if len(rows) > SHOWN else "")


def _leaks(tables: Mapping[str, Columns], inputs: Sequence[str], label: str) -> Iterator[Finding]:
    """Columns that tell the label alone, on training and validation rows."""
    parts = [tables[name] for name in ("train", "validation") if name in tables]
    if not parts:
        return
    names = [
        name for name in (*inputs, label) if len({part[name].shape[1:] for part in parts}) == 1
    ]
    if label not in names or len(names) < len(inputs) + 1:
        return
    joined = {name: np.concatenate([part[name] for part in parts]) for name in names}
    for leak in telling_columns(joined, inputs, label):
        yield Finding(
            "feature_tells_label",
            f"The column {leak.column!r} alone removes {leak.skill:.1%} of the trivial predictor's"
            f" error: it may be the label {label!r} in another form, or known only after it.",
            "Leave it out of data.held_out.inputs, or explain in the plan's text why it is known"
            " beforehand.",
            {"column": leak.column, "skill": leak.skill},
        )


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
    """As "x", or "x[3]" for one place of a wider column."""
    skill: float


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
