"""What a person should know about a plan's tables before approving them, and what forbids it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from harness.domain.findings import Finding
from harness.errors import RefusedError
from harness.plans.contamination import (
    SHOWN,
    Columns,
    Near,
    Shared,
    near_duplicates,
    near_texts,
    shared_rows,
    text_columns,
)
from harness.plans.leaks import Leak, id_tells, mantissa_leaks, telling_columns, telling_parts

ORDER = ("train", "validation", "held_out")
USUAL = 2.0
"""Near-duplicates are reported from this multiple of those among the training rows."""


def data_findings(
    tables: Mapping[str, Columns],
    inputs: Sequence[str],
    label: str,
    *,
    secret: frozenset[str] = frozenset(),
    id_column: str | None = None,
) -> list[Finding]:
    """Contamination between the splits in `tables` (by their names in ORDER), and columns that tell
    the label. Rows of splits in `secret` are counted and not named."""
    findings: list[Finding] = []
    for first, second in combinations([name for name in ORDER if name in tables], 2):
        named = not {first, second} & secret
        findings += _between(tables[first], tables[second], inputs, label, (first, second), named)
    readable = {name: table for name, table in tables.items() if name not in secret}
    return [*findings, *_leaks(readable, inputs, label, id_column)]


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
        pairs = [
            pair for pair in zip(texts.rows, texts.first, strict=True) if pair[0] not in exact
        ]
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


def hidden_labels(
    tables: Mapping[str, Columns], inputs: Sequence[str], label: str
) -> list[RefusedError]:
    """What forbids an approval: the label beside the values of inputs, in last bits, late digits or
    ways of writing; in all rows that training may read, or in one table alone."""
    _, joined = _joined(tables, inputs, label)
    known = {label, *inputs}
    for table in (joined, *tables.values()):
        leaks = mantissa_leaks(table, inputs, label) if table and known <= set(table) else []
        if leaks:
            return [_written(leak, label) for leak in leaks]
    return []


def _written(leak: Leak, label: str) -> RefusedError:
    return RefusedError(
        f"{leak.words} removes {leak.skill:.1%} of the trivial predictor's error for the label"
        f" {label!r}, though the values themselves say little: the label was written there.",
        hint="Take the columns from the source again; or round their numbers to what was measured,"
        " and write all cells in one form, without spaces at their ends.",
        code="label_in_last_bits",
    )


def _joined(
    tables: Mapping[str, Columns], inputs: Sequence[str], label: str
) -> tuple[list[Columns], Columns | None]:
    """The tables that training may read, and the rows of all of them; None where their columns do
    not fit."""
    parts = [tables[name] for name in ("train", "validation") if name in tables]
    names = [
        name
        for name in (*inputs, label)
        if len({part[name].shape[1:] for part in parts if name in part}) == 1
    ]
    if label not in names or len(names) < len(inputs) + 1:
        return parts, None
    return parts, {name: np.concatenate([part[name] for part in parts]) for name in names}


def _leaks(
    tables: Mapping[str, Columns], inputs: Sequence[str], label: str, id_column: str | None
) -> Iterator[Finding]:
    """What tells the label, on training and validation rows."""
    parts, joined = _joined(tables, inputs, label)
    if joined is None:
        return
    for leak in [*telling_columns(joined, inputs, label), *telling_parts(joined, inputs, label)]:
        yield Finding(
            "feature_tells_label",
            f"{leak.words} removes {leak.skill:.1%} of the trivial predictor's"
            f" error: it may be the label {label!r} in another form, or known only after it.",
            "Leave it out of data.held_out.inputs, or explain in the plan's text why it is known"
            " beforehand.",
            {"column": leak.column, "skill": leak.skill},
        )
    for part in parts:
        told = id_tells(part, id_column, label) if id_column in part else None
        if told is not None:
            yield Finding(
                "id_tells_label",
                f"{told.words} removes {told.skill:.1%} of the trivial predictor's error.",
                "Give the rows ids that say nothing: whoever sees an id sees the label.",
                {"column": told.column, "skill": told.skill},
            )
            return
