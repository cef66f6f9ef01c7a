"""Rows that belong together (`data.group`)."""

from pathlib import Path

import numpy as np
import pytest

from harness.errors import PlanError
from harness.ledger.project import open_project
from harness.plans.approval import approve_plan, check_plan
from harness.plans.tables import read_table, write_table
from tests.blobs import PLAN

GROUPED = PLAN.replace("  held_out: {", "  group: patient\n  held_out: {")


def grouped(root: Path, **first: int) -> None:
    """Ten rows a patient; numbers of patients begin at `first`."""
    (root / "plan.md").write_text(GROUPED)
    for split in ("train", "validation", "held_out"):
        path = root / f"data/{split}.npz"
        columns = dict(read_table(path).columns)
        patients = first.get(split, 0) + np.arange(len(columns["y"])) // 10
        write_table(path, {**columns, "patient": patients})


def test_a_group_in_two_splits_is_a_problem(root: Path, environment: dict[str, str]) -> None:
    grouped(root, train=0, validation=4, held_out=1000)
    shared = [
        problem
        for problem in check_plan(root, root / "plan.md", environment, by_person=True).problems
        if problem.code == "groups_shared"
    ]
    assert len(shared) == 1
    assert "'patient' have rows in train and in validation, e.g. " in shared[0].message
    assert "expected each in one split" in shared[0].message
    assert "harness data split TABLE --group patient" in shared[0].hint


def test_groups_of_their_own_are_frozen_with_the_plan(
    root: Path, environment: dict[str, str]
) -> None:
    grouped(root, train=0, validation=500, held_out=1000)
    checked = check_plan(root, root / "plan.md", environment, by_person=True)
    assert checked.problems == ()
    few = {
        finding.data["split"]: finding.data["groups"]
        for finding in checked.findings
        if finding.code == "groups_too_few"
    }
    assert few == {"validation": 3, "held_out": 4}
    with open_project(root, environment) as project:
        approved = approve_plan(project, root / "plan.md", by="ada")
        assert {split["group"] for split in approved.splits.values()} == {"patient"}
        # In the vault the groups are counted and no longer named.
        grouped_train = dict(read_table(root / "data/train.npz").columns)
        moved = grouped_train["patient"] * 0 + 1000
        write_table(root / "data/train.npz", {**grouped_train, "patient": moved})
        with pytest.raises(PlanError, match="1 groups of the column 'patient'") as refused:
            approve_plan(project, root / "plan.md", by="ada")
        assert refused.value.code == "groups_shared"
        assert "e.g." not in refused.value.message
    # Whoever may ask as often as he likes would be told which groups they are.
    assert check_plan(root, root / "plan.md", environment, by_person=True).problems == ()
