"""Who draws which rows: shares, classes, whole groups, and nothing of the future in train."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from harness.errors import UsageError
from harness.plans.drawing import Draw, Rows, are_classes, draw

SHARES = {"held_out": 0.2, "validation": 0.1}
Y = np.array(["a"] * 280 + ["b"] * 100 + ["c"] * 20)


def drawn(shares: Mapping[str, float] = SHARES, **more: Any) -> dict[str, Rows]:
    return draw(Draw(**{"shares": shares, "seed": 3, "stratify": True, "label": Y, **more}))


def all_of(parts: dict[str, Rows]) -> list[int]:
    return sorted(row for rows in parts.values() for row in rows.tolist())


def test_classes_stand_in_each_part_by_their_share() -> None:
    parts = drawn()
    assert all_of(parts) == list(range(400))
    held = {
        name: np.unique(Y[rows], return_counts=True)[1].tolist() for name, rows in parts.items()
    }
    assert held == {"train": [196, 70, 14], "held_out": [56, 20, 4], "validation": [28, 10, 2]}
    assert all((np.diff(rows) > 0).all() for rows in parts.values()), "in the table's order"


def test_a_small_class_leaves_a_row_for_training() -> None:
    few = np.flatnonzero(np.unique(Y, return_inverse=True)[1] == 2)[:4]
    label = np.concatenate([Y[Y[few[0]] != Y], Y[few]])
    parts = drawn({"held_out": 0.4, "validation": 0.4}, label=label)
    assert all(Y[few[0]] in label[rows] for rows in parts.values())


def test_a_class_whose_copies_leave_it_no_row_in_a_part_is_refused() -> None:
    """Three rows, two of them copies: no part of three can be without one of them."""
    label = np.concatenate([np.array(["a"] * 397), ["c"] * 3])
    copies = np.concatenate([np.arange(398), [397, 398]])
    with pytest.raises(UsageError, match=r"The class c came into . of the 3 parts") as refused:
        drawn(label=label, alike=copies)
    assert "--seed" in refused.value.hint
    apart = drawn(label=label, alike=np.arange(400))
    assert all("c" in label[rows] for rows in apart.values())
    whole = drawn(label=label, alike=copies, stratify=False)
    assert all_of(whole) == list(range(400))


def test_the_seed_alone_decides() -> None:
    first, second, other = drawn(), drawn(), drawn(seed=4)
    assert all((first[name] == second[name]).all() for name in first)
    assert (first["held_out"] != other["held_out"]).any()


def test_groups_stay_whole_and_classes_near_their_share() -> None:
    group = np.random.default_rng(0).permutation(np.arange(400) % 40)
    parts = drawn(group=group)
    assert all_of(parts) == list(range(400))
    sets = [set(group[rows].tolist()) for rows in parts.values()]
    assert sum(map(len, sets)) == len(set.union(*sets)) == 40
    assert abs(len(parts["held_out"]) - 80) <= 10
    assert abs((Y[parts["held_out"]] == "a").mean() - 0.7) < 0.1


def test_groups_of_very_different_size() -> None:
    group = np.repeat(np.arange(11), [150, 100, 50, 30, 20, 15, 10, 10, 5, 5, 5])
    parts = drawn(group=group, stratify=False)
    assert {name: len(set(group[rows].tolist())) >= 2 for name, rows in parts.items()} == (
        dict.fromkeys(parts, True)
    )
    assert abs(len(parts["held_out"]) - 80) <= 20


def test_by_time_nothing_of_train_is_newer_than_a_later_part() -> None:
    days = np.random.default_rng(1).permutation([f"2024-{1 + i // 40:02d}-01" for i in range(400)])
    parts = drawn(stratify=False, time=days)
    assert all_of(parts) == list(range(400))
    newest = {name: max(days[rows].tolist()) for name, rows in parts.items()}
    oldest = {name: min(days[rows].tolist()) for name, rows in parts.items()}
    assert newest["train"] < oldest["validation"]
    assert newest["validation"] < oldest["held_out"]
    assert {name: len(rows) for name, rows in parts.items()} == {
        "train": 280,
        "held_out": 80,
        "validation": 40,
    }


def test_copies_stay_together() -> None:
    alike = np.concatenate([np.arange(390), np.arange(10)])
    parts = drawn(alike=alike)
    of = {row: name for name, rows in parts.items() for row in rows.tolist()}
    assert all(of[row] == of[390 + row] for row in range(10))


@pytest.mark.parametrize(
    ("changed", "code", "told"),
    [
        ({"label": Y[:60]}, "too_few_rows", "60 rows: a share of 0.1"),
        ({"shares": {"held_out": 0.5, "validation": 0.49}}, "too_few_rows", "share of 0.01"),
        (
            {"label": np.array(["a"] * 398 + ["b"] * 2)},
            "class_too_small",
            "class b has 2 rows; each of the 3 parts",
        ),
        (
            {"label": np.array(["a"] * 390 + ["b"] * 10), "group": np.arange(400) // 20},
            "class_too_small",
            "class b stands in 1 groups",
        ),
        ({"group": np.arange(400) // 100, "stratify": False}, "too_few_groups", "of 4 groups"),
        ({"time": np.zeros(400), "stratify": False}, "too_few_moments", "of one moment"),
        ({"time": np.full(400, "01/02/2024")}, "time_unordered", "ISO dates"),
        ({"time": np.full(400, np.nan)}, "time_unordered", "finite numbers"),
    ],
)
def test_what_gives_no_split_is_refused(changed: dict[str, Any], code: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as error:
        drawn(**changed)
    assert error.value.code == code


@pytest.mark.parametrize(
    ("label", "classes"),
    [
        (Y, True),
        (np.arange(400) % 3, True),
        (np.arange(400) % 2 == 0, True),
        (np.arange(400), False),
        (np.arange(400) % 2 / 2, False),
        (np.array([f"text {row}" for row in range(400)]), False),
    ],
)
def test_what_are_classes(label: np.ndarray, classes: bool) -> None:
    assert are_classes(label) is classes
