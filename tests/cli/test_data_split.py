"""`harness data split` and `harness init --data` as a person types them: from one table to a plan
that can be approved; agents are refused."""

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.cli.journey import Journey
from tests.install.repository import tree

ROWS = 200


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    """A folder with one table, and nothing else."""
    root, home = tmp_path / "Churn 2024", tmp_path / "home"
    (root / "data").mkdir(parents=True)
    home.mkdir()
    generator = np.random.default_rng(3)
    with (root / "data/churn.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["a", "b", "shop", "churned"])
        for row in range(ROWS):
            a, b = generator.normal(size=2).round(4)
            writer.writerow([a, b, f"s{row // 5}", "yes" if a > 0.3 else "no"])
    return Journey(root, home)


def test_init_splits_and_writes_a_plan_that_can_be_approved(journey: Journey) -> None:
    words = ("init", "--data", "data/churn.csv", "--label", "churned", "--group", "shop")
    done = journey.harness(*words)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "whole groups of shop, stratified by churned" in done.stdout
    assert "filled in plan.md" in done.stdout
    assert [path.name for path in (journey.root / "data").iterdir()] == ["churn.train.csv"]
    plan = (journey.root / "plan.md").read_text()
    assert "name: churn-2024\n" in plan
    assert "validation: hidden\n" in plan
    assert "group: shop\n" in plan
    again = journey.harness(*words)
    assert again.exit_code == 0, again.stdout + again.stderr
    assert "left as it is: plan.md" in again.stdout
    checked = journey.harness("plan", "check", "--json")
    assert checked.exit_code == 0, checked.stdout
    assert "bits_few" not in [one["code"] for one in checked.document["findings"]]
    (journey.root / "plan.md").write_text(plan.replace("  bits: 20\n", "  bits: 12\n"))
    findings = journey.harness("plan", "check", "--json").document["findings"]
    (few,) = [one for one in findings if one["code"] == "bits_few"]
    assert few["data"]["reach"] < few["data"]["experiments"]
    (journey.root / "plan.md").write_text(plan.replace("loop: {", "loop: {search: tree, "))
    findings = journey.harness("plan", "check", "--json").document["findings"]
    assert "tree_without_scores" in [one["code"] for one in findings]
    (journey.root / "plan.md").write_text(plan)
    approved = journey.harness("plan", "approve", "--json")
    assert approved.exit_code == 0, approved.stdout + approved.stderr
    splits = approved.document["splits"]
    assert splits["validation"]["hidden"] is True
    assert sum(split["rows"] for split in splits.values()) == ROWS
    opened = journey.harness("experiment", "new", "--hypothesis", "a says it")
    assert "data: train data/churn.train.csv (" in opened.stdout
    assert "is hidden: training holds out rows of its own\n" in opened.stdout


@pytest.mark.parametrize(
    "wrong", [("--label", "churnd"), ("--label", "churned", "--group", "mall")]
)
def test_what_the_split_refuses_makes_no_project(journey: Journey, wrong: tuple[str, ...]) -> None:
    before = sorted(path.name for path in journey.root.iterdir())
    refused = journey.harness("init", "--data", "data/churn.csv", *wrong)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"no column {wrong[-1]!r}" in refused.stderr
    assert sorted(path.name for path in journey.root.iterdir()) == before
    assert not (journey.home / "state").exists()
    done = journey.harness("init", "--data", "data/churn.csv", "--label", "churned")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "validation: hidden\n" in (journey.root / "plan.md").read_text()


def test_split_prints_what_the_plan_needs(journey: Journey) -> None:
    assert journey.harness("init", "--hooks", "none").exit_code == 0
    done = journey.harness("data", "split", "data/churn.csv", "--label", "churned")
    assert done.exit_code == 0, done.stderr
    assert "  held-out          40 rows  in the vault\n" in done.stdout
    assert "data:\n  train: data/churn.train.csv\n  validation: hidden\n" in done.stdout
    again = journey.harness("data", "split", "data/churn.csv", "--label", "churned", "--json")
    assert again.document["again"] is True
    assert again.document["rows"] == {"train": 140, "held_out": 40, "validation": 20}
    assert Path(again.document["original"]).is_relative_to(journey.state / "vault")


def test_the_split_that_approval_makes_is_told(journey: Journey) -> None:
    done = journey.harness("init", "--data", "data/churn.csv", "--label", "churned")
    assert done.exit_code == 0, done.stderr
    plan = journey.root / "plan.md"
    plan.write_text(plan.read_text().replace("  validation: hidden\n", ""))
    approved = journey.harness("plan", "approve")
    told = (
        "data: train data/churn.train.train.csv (112 rows), validation"
        " data/churn.train.validation.csv (28 rows); the harness made both from"
        " data/churn.train.csv\n"
    )
    assert told in approved.stdout
    opened = journey.harness("experiment", "new", "--hypothesis", "a says it", "--json")
    assert opened.document["data"] == {
        "train": "data/churn.train.train.csv",
        "validation": "data/churn.train.validation.csv",
    }


def test_what_is_not_there_is_refused_and_nothing_changes(journey: Journey) -> None:
    assert journey.harness("init", "--hooks", "none").exit_code == 0
    before = tree(journey.root)
    refused = journey.harness("data", "split", "data/none.csv", "--label", "churned")
    assert (refused.exit_code, "There is no table at" in refused.stderr) == (2, True)
    refused = journey.harness("data", "split", "data/churn.csv", "--label", "gone", "--json")
    assert (refused.exit_code, refused.document["error"]["code"]) == (2, "column_missing")
    assert tree(journey.root) == before


@pytest.mark.parametrize(
    "words",
    [
        ("data", "split", "data/churn.csv", "--label", "churned"),
        ("init", "--data", "data/churn.csv", "--label", "churned"),
    ],
)
def test_an_agent_is_refused(journey: Journey, words: tuple[str, ...]) -> None:
    assert journey.harness("init", "--hooks", "none").exit_code == 0
    before = tree(journey.root)
    refused = journey.harness(*words, "--json", CLAUDECODE="1")
    assert (refused.exit_code, refused.document["error"]["code"]) == (2, "human_verb")
    assert tree(journey.root) == before


def test_init_with_data_writes_no_second_plan(journey: Journey) -> None:
    (journey.root / "plan.md").write_text("mine\n")
    refused = journey.harness("init", "--data", "data/churn.csv", "--label", "churned", "--json")
    assert (refused.exit_code, refused.document["error"]["code"]) == (2, "plan_exists")
    assert (
        "`harness data split data/churn.csv --label churned`" in refused.document["error"]["hint"]
    )
    assert (journey.root / "data/churn.csv").exists()
    assert not (journey.root / ".harness").exists()
    for words in (
        ("init", "--data", "data/churn.csv", "--json"),
        ("init", "--label", "churned", "--json"),
        ("init", "--data", "data/churn.csv", "--label", "churned", "--dry-run"),
        ("init", "--data", "data/churn.csv", "--label", "churned", "--remove"),
    ):
        assert journey.harness(*words).exit_code == 2


def test_removing_the_harness_leaves_the_tables_and_says_where(journey: Journey) -> None:
    words = ("--data", "data/churn.csv", "--label", "churned")
    assert journey.harness("init", "--hooks", "none", *words).exit_code == 0
    state = journey.state
    removed = journey.harness("init", "--remove")
    assert removed.exit_code == 0, removed.stdout + removed.stderr
    for name in ("held_out", "validation", "originals"):
        (file,) = (state / "vault" / name).glob("*.csv")
        assert str(file) in removed.stdout
    assert "The rows before the split of data/churn.csv are in" in removed.stdout


def test_a_copy_that_is_written_after_the_split_is_found(journey: Journey) -> None:
    table = journey.root / "data/churn.csv"
    whole = table.read_text("utf-8")
    words = ("init", "--data", "data/churn.csv", "--label", "churned")
    done = journey.harness(*words)
    assert done.exit_code == 0, done.stdout + done.stderr
    head, *rows = whole.splitlines()
    copy = journey.root / "notes/all.csv"
    copy.parent.mkdir()
    copy.write_text("\n".join([head, *reversed(rows)]) + "\n", "utf-8")
    for verb in ("check", "approve"):
        answer = journey.harness("plan", verb, "--json")
        assert answer.exit_code == 2, answer.stdout
        error = answer.document["error"]
        assert "Rows of held-out stand where agents can read them" in error["message"]
        assert "Rows of hidden validation stand where" in error["message"]
        assert "notes/all.csv" in error["message"]
    # Whoever may ask again and again is told nothing of what lies in the vault, and that.
    asked = journey.harness("plan", "check", "--json", CLAUDECODE="1").document
    assert asked["problems"] == []
    assert "splits_not_compared" in [one["code"] for one in asked["findings"]]
    copy.unlink()
    assert journey.harness("plan", "check").exit_code == 0
