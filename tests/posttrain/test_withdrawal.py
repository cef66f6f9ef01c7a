"""A session that is withdrawn from a dataset: what was trained on it is named."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import harness
from harness.cli.withdrawing import taken_out
from harness.errors import UsageError
from harness.files import sha256_file
from harness.ledger.project import Project
from harness.posttrain.lineage import trained_on
from harness.posttrain.training_judgement import ProgramReport
from harness.traces.contexts import sessions_of
from harness.traces.ingest import manifest_of
from harness.traces.withdrawal import digests_of, digests_with, held, sessions_in, withdraw
from tests.blobs import own_environment
from tests.posttrain import programs

NOW = "2026-01-01T00:00:00.000Z"


def mark(path: Path) -> None:
    """The first three rows are of session s, the second one of t too."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows[:3]:
        row["provenance"] = {"sessions": ["s"]}
    rows[4]["provenance"] = {"session": "v"}
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
    withdraw(dataset, "v", at=NOW)
    assert digests_with(dataset, "s") == {before}
    assert digests_with(dataset, "v") == digests_of(dataset) - {sha256_file(dataset)}
    assert digests_with(dataset, "never") == set()
    (used,) = trained_on(project, digests_with(dataset, "s"))
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


def test_an_approved_benchmark_that_holds_the_session_is_named(project: Project, root: Path):
    aside = root / "held_out.jsonl"
    rows = [json.loads(line) for line in aside.read_text().splitlines()]
    rows[0]["provenance"] = {"session": "some-long-id"}
    programs.write_rows(aside, rows)
    programs.write_evaluator(root)
    programs.approve(project)
    told = taken_out(project, "some-lon", [root / "train.jsonl"], dry_run=False)
    assert told["session"] == "some-long-id"
    assert told["benchmarks"] == [{"path": "held_out.jsonl", "named": False, "in_vault": False}]
    words = [
        "traces",
        "withdraw",
        "some-long-id",
        str(root / "train.jsonl"),
        "--project",
        str(root),
    ]
    typed = CliRunner(env=own_environment(root.parent)).invoke(harness, words)
    assert "held_out.jsonl holds rows of it too" in typed.stdout
    assert typed.exit_code == 0
    told = taken_out(project, "some-long-id", [aside], dry_run=False)
    assert [one["rows"] for one in told["datasets"]] == [1]
    assert told["benchmarks"] == [{"path": "held_out.jsonl", "named": True, "in_vault": True}]
    again = taken_out(project, "some-long-id", [aside], dry_run=False)
    assert again["benchmarks"] == told["benchmarks"]


def test_a_withdrawn_session_is_never_the_beginning_of_another(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    programs.write_rows(path, [{"session": name} for name in ("part3", "part30", "zz")])
    for _ in range(2):
        assert taken_out(None, "part3", [path], dry_run=False)["session"] == "part3"
        assert sessions_in(path) == {"part30", "zz"}
    for short in ("", "z", "part"):
        with pytest.raises(UsageError, match="too short"):
            taken_out(None, short, [path], dry_run=False)
    taken_out(None, "part30", [path], dry_run=False)
    with pytest.raises(UsageError, match="too short"):
        taken_out(None, "", [path], dry_run=False)
    assert sessions_in(path) == {"zz"}


def test_a_killed_withdrawal_still_tells_what_was_trained_on_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    dataset = root / "train.jsonl"
    mark(dataset)
    before = sha256_file(dataset)

    monkeypatch.setattr(os, "replace", killed_after(1))
    with pytest.raises(KeyboardInterrupt):
        withdraw(dataset, "s", at=NOW)
    monkeypatch.undo()
    assert sha256_file(dataset) == before
    assert digests_with(dataset, "s") == {before}
    withdraw(dataset, "s", at=NOW)
    told = json.loads(manifest_of(dataset).read_text())
    assert [one["from_sha256"] for one in told["withdrawn"]] == [before]
    assert (told["rows"], told["sha256"]) == (17, sha256_file(dataset))


def killed_after(renames: int) -> Callable[..., None]:
    """Of the files, the manifest's comes first."""
    real, left = os.replace, [renames]

    def replace(*words: Any, **named: Any) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        real(*words, **named)

    return replace
