"""A session that is withdrawn from a dataset: what was trained on it is named."""

import json
from collections.abc import Callable
from pathlib import Path

from harness.files import sha256_file
from harness.ledger.project import Project
from harness.posttrain.lineage import trained_on
from harness.posttrain.training_judgement import ProgramReport
from harness.traces.contexts import sessions_of
from harness.traces.withdrawal import digests_of, held, withdraw
from tests.posttrain import programs

NOW = "2026-01-01T00:00:00.000Z"


def mark(path: Path) -> None:
    """The first three rows are of session s, the second one of t too."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows[:3]:
        row["provenance"] = {"sessions": ["s"]}
    rows[1]["provenance"]["sessions"].append("t")
    programs.write_rows(path, rows)


def test_the_model_of_a_dataset_that_held_the_session_is_named_afterwards_too(
    project: Project, root: Path, execute: Callable[..., ProgramReport]
):
    dataset = root / "train.jsonl"
    mark(dataset)
    report = execute()
    before = sha256_file(dataset)
    assert (held(dataset, "s").rows, held(dataset, "t").rows) == (3, 1)
    assert withdraw(dataset, "s", at=NOW) == sha256_file(dataset) != before
    assert (held(dataset, "s").rows, held(dataset, "s").of) == (0, 17)
    (used,) = trained_on(project, digests_of(dataset))
    assert used["sha256"] == before
    assert [model["id"] for model in used["models"]] == [report.model]
    assert not used["models"][0]["served"]
    assert trained_on(project, {sha256_file(dataset)}) == []


def test_a_row_names_its_sessions_in_either_form():
    assert sessions_of({"session": "a", "provenance": {"session": "b", "sessions": ["c", 4]}}) == {
        "a",
        "b",
        "c",
    }
    assert sessions_of({"provenance": 3}) == set()
