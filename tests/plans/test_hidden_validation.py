"""A hidden validation lies in the vault from the approval on, and training never gets it."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from harness.errors import HarnessError, PlanError, RefusedError
from harness.evaluation.split_rows import table_of
from harness.files import sha256_file
from harness.ledger.project import Project
from harness.plans.approval import approve_plan, check_plan
from harness.plans.approved import data_paths, declared, frozen_changes
from harness.plans.parse import parse_plan
from harness.plans.splits import split_paths
from harness.plans.tables import read_table, write_table
from tests.blobs import PLAN, hide_validation, table
from tests.plans.test_plans import git

PLACE = "data/train.validation.npz"
HIDDEN = PLAN.replace("data/validation.npz", "hidden")


def test_hidden_is_said_by_the_plan() -> None:
    plan = parse_plan(HIDDEN, where="plan.md")
    assert plan.hidden_validation
    assert split_paths(plan) == ("data/train.npz", PLACE)
    assert not parse_plan(PLAN, where="plan.md").hidden_validation


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("validation: hidden", "validation: secret", r"or the word hidden"),
        ("data/held_out.npz", PLACE, "another file than validation"),
        ("  held_out:", "  group: y\n  held_out:", "neither the label nor the id"),
    ],
)
def test_what_the_plan_cannot_mean_is_refused(old: str, new: str, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        parse_plan(HIDDEN.replace(old, new), where="plan.md")


def test_approval_moves_a_hidden_validation_to_the_vault(project: Project, root: Path) -> None:
    hide_validation(root)
    before = (root / PLACE).read_bytes()
    approved = approve_plan(project, root / "plan.md", by="ada")
    split = approved.splits["validation"]
    assert not (root / PLACE).exists()
    assert "path" not in split
    assert (split["hidden"], split["rows"], split["label"]) == (True, 30, "y")
    at = table_of(project, approved, "validation")
    assert at.path.is_relative_to(project.layout.vault)
    assert at.path.read_bytes() == before
    assert at.key is not None
    assert at.key.of_file(at.path) == at.sha256 != sha256_file(at.path)
    assert declared(approved) == {"data/train.npz": approved.splits["train"]["sha256"]}
    assert PLACE in data_paths(approved)
    assert frozen_changes(project, approved) == []


def test_the_vault_gives_the_hidden_validation_to_the_next_version(
    project: Project, root: Path
) -> None:
    hide_validation(root)
    first = approve_plan(project, root / "plan.md", by="ada")
    assert approve_plan(project, root / "plan.md", by="ada") == first
    (root / "plan.md").write_text(HIDDEN + "\nMore words.\n")
    second = approve_plan(project, root / "plan.md", by="ada")
    assert (second.version, second.splits) == (2, first.splits)


def test_a_hidden_validation_that_an_agent_could_read_is_refused(
    project: Project, root: Path
) -> None:
    hide_validation(root)
    shutil.copy(root / PLACE, root / "copy.bin")
    git(root, "init", "-q")
    git(root, "add", "-f", PLACE)
    with pytest.raises(HarnessError) as error:
        approve_plan(project, root / "plan.md", by="ada")
    assert f"The hidden validation file {PLACE} is known to git" in error.value.message
    assert "copy.bin" in error.value.message
    assert (root / PLACE).exists()
    git(root, "rm", "-q", "-rf", "--cached", ".")
    shutil.rmtree(root / ".git")
    (root / "copy.bin").rename(root.parent / "copy.bin")
    approved = approve_plan(project, root / "plan.md", by="ada")
    shutil.copy(project.layout.state / approved.splits["validation"]["vault"], root / "again.bin")
    with pytest.raises(RefusedError, match=r"hidden validation file .*again\.bin"):
        approve_plan(project, root / "plan.md", by="ada")


def test_a_missing_hidden_validation_is_named(
    project: Project, root: Path, environment: dict[str, str]
) -> None:
    hide_validation(root)
    (root / PLACE).unlink()
    (problem,) = check_plan(root, root / "plan.md", environment, by_person=True).problems
    assert f"The hidden validation file {PLACE} does not exist" in problem.message
    assert "data.validation" in problem.hint


def test_open_and_hidden_validation_may_follow_each_other(project: Project, root: Path) -> None:
    opened = approve_plan(project, root / "plan.md", by="ada")
    assert "hidden" not in opened.splits["validation"]
    (root / "data/validation.npz").unlink()
    write_table(root / PLACE, table(25, seed=9))
    (root / "plan.md").write_text(HIDDEN)
    hidden = approve_plan(project, root / "plan.md", by="ada")
    assert hidden.splits["validation"]["rows"] == 25
    write_table(root / "data/validation.npz", table(30, seed=1))
    (root / "plan.md").write_text(PLAN)
    assert (
        approve_plan(project, root / "plan.md", by="ada").splits["validation"]
        == (opened.splits["validation"])
    )


@pytest.mark.parametrize("place", [PLACE, "data/held_out.npz"])
def test_rows_of_an_approval_are_not_replaced_by_a_file_that_came_later(
    project: Project, root: Path, environment: dict[str, str], place: str
) -> None:
    hide_validation(root)
    approved = approve_plan(project, root / "plan.md", by="ada")
    write_table(root / place, table(40, seed=77))
    (problem,) = check_plan(root, root / "plan.md", environment, by_person=True).problems
    assert (problem.code, place in problem.message) == ("held_out_replaced", True)
    with pytest.raises(RefusedError) as refused:
        approve_plan(project, root / "plan.md", by="ada")
    assert (refused.value.code, (root / place).is_file()) == ("held_out_replaced", True)
    (root / place).unlink()
    assert approve_plan(project, root / "plan.md", by="ada").splits == approved.splits


def grouped(rows: int, seed: int) -> dict[str, np.ndarray]:
    return {**table(rows, seed), "patient": np.arange(rows) // 5}


def test_a_group_column_is_asked_of_every_split_and_recorded(project: Project, root: Path) -> None:
    text = PLAN.replace("  held_out:", "  group: patient\n  held_out:")
    (root / "plan.md").write_text(text)
    with pytest.raises(PlanError) as error:
        approve_plan(project, root / "plan.md", by="ada")
    assert error.value.message.count("has no column 'patient'") == 3
    for seed, (name, rows) in enumerate([("train", 60), ("validation", 30), ("held_out", 40)]):
        columns = grouped(rows, seed)
        columns["patient"] += 100 * seed
        write_table(root / f"data/{name}.npz", columns)
    approved = approve_plan(project, root / "plan.md", by="ada")
    assert {split["group"] for split in approved.splits.values()} == {"patient"}
    assert "patient" in read_table(root / "data/train.npz").columns


def test_a_split_at_approval_keeps_groups_whole(project: Project, root: Path) -> None:
    text = PLAN.replace("  validation: data/validation.npz\n", "  group: patient\n")
    (root / "plan.md").write_text(text)
    write_table(root / "data/train.npz", grouped(60, 0))
    rows = grouped(40, 2)
    write_table(root / "data/held_out.npz", {**rows, "patient": rows["patient"] + 100})
    approved = approve_plan(project, root / "plan.md", by="ada")
    parts = [
        set(read_table(root / approved.splits[name]["path"]).columns["patient"].tolist())
        for name in ("train", "validation")
    ]
    assert (len(parts[0] & parts[1]), len(parts[0] | parts[1])) == (0, 12)
    (root / "plan.md").write_text(text.replace("experiments: 3", "experiments: 4"))
    assert approve_plan(project, root / "plan.md", by="ada").splits == approved.splits
    write_table(root / "data/train.npz", {**table(60, 0), "patient": np.arange(60) // 20})
    with pytest.raises(PlanError, match="of 3 groups"):
        approve_plan(project, root / "plan.md", by="ada")
