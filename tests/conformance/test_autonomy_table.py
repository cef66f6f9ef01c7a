"""The list of what Zero Operators' v1.1 asks of a loop that runs alone is whole: each line names a
test of ours that exists, or says how ours differs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.test_training_table import exists

TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("autonomy.yaml").read_text("utf-8")
)
COUNTS = {"phases": 6, "modes": 5, "iteration": 11, "post-mortems": 6, "low-token": 6}
ROWS = [(group, row) for group, rows in TABLE.items() for row in rows]


def test_the_list_is_whole() -> None:
    assert {group: len(rows) for group, rows in TABLE.items()} == COUNTS
    asked = [row["asks"] for _, row in ROWS]
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize(("group", "row"), ROWS, ids=[row["asks"][:60] for _, row in ROWS])
def test_each_line_is_held_by_a_test_or_a_named_difference(
    group: str, row: dict[str, Any]
) -> None:
    assert set(row) <= {"asks", "held", "differs"}
    assert "held" in row or "differs" in row
    if "held" in row:
        assert "::" in row["held"]
        assert exists(row["held"]), row["held"]
    if "differs" in row:
        assert row["differs"].endswith(".")
        assert len(row["differs"].split()) > 5
