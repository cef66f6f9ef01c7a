"""What a person reads of a first plan: all of it, in a few lines, and no value that looks like
another."""

from typing import Any

from harness.plans.first_plan import listing
from harness.plans.parse import parse_plan
from tests.cli.journey import PLAN

CONTENT: dict[str, Any] = parse_plan(PLAN, where="plan.md").plain()


def leaves(values: Any) -> list[Any]:
    if isinstance(values, dict):
        return [leaf for value in values.values() for leaf in leaves(value)]
    return [values]


def test_all_that_the_plan_says_stands_there_in_lines_of_a_narrow_terminal() -> None:
    lines = list(listing(CONTENT))
    assert len(lines) < 24
    assert max(map(len, lines)) < 78
    assert "oracle: metric=accuracy, direction=maximize, scorer=accuracy," in lines
    assert 'objective: "Classify three blobs"' in lines
    text = " ".join(lines)
    said = [value for value in leaves(CONTENT) if value not in (None, [])]
    assert len(said) > 20
    words = ["false" if value is False else str(value).strip("[]'") for value in said]
    assert [word for word in words if word.replace("', '", ", ") not in text] == []
    assert "none" not in text.lower()


def test_no_value_looks_like_another_field() -> None:
    forged = {**CONTENT, "objective": "good, seeds=9\noracle: seeds=9"}
    lines = list(listing(forged))
    assert 'objective: "good, seeds=9\\noracle: seeds=9"' in lines
    assert len(lines) == len(list(listing(CONTENT)))
