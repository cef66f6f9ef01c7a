"""A first plan can be read back, whatever the folder, the table and its columns are called."""

import pytest

from harness.artifacts.front_matter import read_front_matter
from harness.plans.parse import parse_plan
from harness.plans.starting_plan import FirstPlan, first_plan

NO_TEXT = ("2024", "null", "true", "1e5", ".5", "1e3", "-.inf", "~")


@pytest.mark.parametrize("name", [*NO_TEXT, "churn", "no", "2024-11-29"])
def test_no_name_is_read_as_something_else_than_text(name: str) -> None:
    held_out = {"path": "data/test.csv", "inputs": [name, "age"], "label": "spent", "id": "row"}
    text = first_plan(
        FirstPlan(
            folder=name,
            table="data/all.csv",
            data={"train": "data/train.csv", "held_out": held_out},
            metric="mae",
            tiers={"must": 3.0, "should": 2.0},
            trivial=4.0,
            entry=name,
            predict="python predict.py",
        )
    )
    read = read_front_matter(text, where="plan.md").data
    assert read["data"]["held_out"] == held_out
    assert read["training"] == {"entry": name}
    assert isinstance(read["name"], str)
    assert parse_plan(text, where="plan.md").name == read["name"]
