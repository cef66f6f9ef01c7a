"""Rows that belong together (`data.group`): no group stands in two splits, and a later split has
enough of them to show a difference."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from harness.domain.findings import Finding
from harness.errors import PlanError
from harness.plans.splits import SplitTable

LEAST_GROUPS = 6
"""With 5 groups that all agree the smallest p is 2 / 2 ** 5 = 0.06: nothing is ever better."""
_SHOWN = 3


def group_problems(
    splits: Mapping[str, SplitTable], group: str | None, *, secret: frozenset[str]
) -> list[PlanError]:
    """One for each two splits that share groups. Groups of `secret` splits are counted, not
    named."""
    if group is None:
        return []
    names = {split: _names(table, group) for split, table in splits.items()}
    return [
        _shared(one, other, group, names, secret)
        for one, other in combinations(names, 2)
        if names[one] & names[other]
    ]


def _shared(
    one: str, other: str, group: str, names: Mapping[str, set[str]], secret: frozenset[str]
) -> PlanError:
    both = sorted(names[one] & names[other])
    hidden = one in secret or other in secret
    shown = "" if hidden else f", e.g. {', '.join(both[:_SHOWN])}"
    return PlanError(
        f"data.group: {len(both)} groups of the column {group!r} have rows in {one} and in"
        f" {other}{shown}; expected each in one split.",
        hint=(
            "Draw the splits by whole groups (`harness data split TABLE --group"
            f" {group}`), or take data.group out when rows of one {group} have nothing in common."
        ),
        code="groups_shared",
    )


def group_notes(splits: Mapping[str, SplitTable], group: str | None) -> list[Finding]:
    """`groups_too_few` for each later split."""
    counts = {
        split: len(_names(table, group))
        for split, table in splits.items()
        if group is not None and split != "train"
    }
    return [
        Finding(
            "groups_too_few",
            f"{split} has {count} groups: with fewer than {LEAST_GROUPS} no difference is beyond"
            " the luck of the groups, so none is kept without a person.",
            "Put more groups into it, or compare by another column.",
            {"split": split, "groups": count},
        )
        for split, count in counts.items()
        if count < LEAST_GROUPS
    ]


def _names(split: SplitTable, group: str) -> set[str]:
    column = split.table.columns[group]
    return {str(value) for value in np.unique(column.astype(str)).tolist()}
