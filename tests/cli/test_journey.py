"""From an existing folder to a kept experiment by hand, through the command alone."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.journey import Journey, make_project

SHORTFALL = "class 2 is confused with class 0"


def checklist(journey: Journey) -> str:
    return (journey.root / ".harness/experiments/CHECKLIST.md").read_text("utf-8")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """A project in a path with a space, with one experiment that went all the way."""
    base = tmp_path_factory.mktemp("journey")
    journey = make_project(base / "my project", base / "home")
    assert journey.harness("init").exit_code == 0
    assert journey.harness("plan", "check").exit_code == 0
    approved = journey.harness("plan", "approve", "--json")
    assert approved.exit_code == 0, approved.stderr
    assert approved.document["splits"]["held_out"]["rows"] == 200
    opened = journey.harness("experiment", "new", "--hypothesis", "centroids", "--json")
    assert opened.document["experiment"] == "exp-0001"
    folder = Path(opened.document["folder"])
    (folder / "config.yaml").write_text("model: centroids\n", "utf-8")
    trained = journey.harness("train", "exp-0001", "--json")
    assert trained.exit_code == 0, trained.stderr
    assert [run["status"] for run in trained.document["runs"]] == ["completed"] * 3
    evaluated = journey.harness("evaluate", "exp-0001", "--json")
    assert evaluated.exit_code == 0, evaluated.stderr
    missing = journey.harness("gate", "check", "exp-0001", "--json")
    assert missing.exit_code == 1
    assert [finding["code"] for finding in missing.document["findings"]] == ["artifact_missing"]
    assert "`harness experiment result exp-0001 --claim" in missing.document["findings"][0]["hint"]
    claims = f"---\nclaims: {{accuracy: {evaluated.document['score']:.2f}}}\n---\n# Result\n"
    (folder / "result.md").write_text(claims, "utf-8")
    passed = journey.harness("gate", "check", "exp-0001")
    assert (
        passed.exit_code,
        "next: decide: `harness keep exp-0001` (by a person)" in passed.stdout,
    ) == (0, True)
    assert SHORTFALL not in checklist(journey)
    shortfalls = f"shortfalls:\n  - {SHORTFALL}\n---\n# Result"
    (folder / "result.md").write_text(claims.replace("---\n# Result", shortfalls), "utf-8")
    again = journey.harness("gate", "check", "exp-0001", "--json")
    assert (again.exit_code, again.document["recorded"]) == (0, True)
    assert SHORTFALL in checklist(journey)
    early = journey.harness("gate", "approve", "exp-0001", "--reason", "good enough", "--json")
    assert (early.exit_code, early.document["error"]["code"]) == (2, "held_out_not_passed")
    assert "`harness evaluate exp-0001 --split held-out`" in early.document["error"]["hint"]
    assert journey.harness("evaluate", "exp-0001", "--split", "held-out").exit_code == 0
    checked = journey.harness("gate", "check", "exp-0001", "--json")
    assert (checked.exit_code, checked.document["gate"], checked.document["verdict"]) == (
        0,
        "held_out",
        "PASS",
    )
    decided = journey.harness("gate", "approve", "exp-0001", "--reason", "beyond the floor")
    assert decided.exit_code == 0, decided.stderr
    return journey


def test_held_out_left_the_project(kept: Journey) -> None:
    assert not (kept.root / "data" / "held_out.npz").exists()
    assert list((kept.state / "vault" / "held_out").iterdir())


def test_status_document(kept: Journey) -> None:
    document = kept.harness("status", "--json", cwd=kept.root / "data").document
    plan = {"name": "toy", "version": 1, "path": "plan.md", "changed": False, "more_bits": None}
    assert 0 < document["plan"].pop("bits_told") <= document["plan"].pop("bits") == 20
    assert document["plan"] == {**plan, "workflow": "classical-ml", "gates": "auto"}
    assert set(document["paths"]) == {"project", "state", "ledger", "experiments"}
    assert Path(document["paths"]["ledger"]).is_file()
    assert not Path(document["paths"]["ledger"]).is_relative_to(kept.root)
    (row,) = document["experiments"]
    assert (row["experiment"], row["status"], row["verdict"], row["split"]) == (
        "exp-0001",
        "kept",
        "PASS",
        "held_out",
    )
    assert row["evidence"].startswith("recomputed")
    # Of held-out one number on its grid, and nothing over rows or seeds.
    assert (row["interval"], row["spread"]) == (None, None)
    assert row["score"] / row["released"]["step"] == pytest.approx(
        round(row["score"] / row["released"]["step"])
    )


def test_decisions_name_the_verdict_they_rest_on(kept: Journey) -> None:
    rows = kept.harness("decisions", "--json").document["decisions"]
    assert [row["kind"] for row in rows] == ["APPROVE", "KEEP"]
    assert {row["verdict"] for row in rows} == {"v-000004"}
    assert all(row["by"].startswith("human:") for row in rows)


def test_looking_twice_at_a_gate_records_nothing(kept: Journey) -> None:
    before = kept.projections()
    answers = [
        kept.harness("gate", "check", "exp-0001", "--gate", "validation", "--json")
        for _ in range(2)
    ]
    assert answers[0].document == answers[1].document
    assert kept.projections() == before


def test_projections_come_back_byte_for_byte(kept: Journey) -> None:
    before = kept.projections()
    assert len(before) == 6
    for name in before:
        (kept.root / ".harness" / name).unlink()
    assert kept.harness("ledger", "rebuild").exit_code == 0
    assert kept.projections() == before


def test_a_clone_imports_the_same_memory(kept: Journey, tmp_path: Path) -> None:
    clone = Journey(tmp_path / "clone", tmp_path / "home")
    clone.home.mkdir()
    shutil.copytree(
        kept.root,
        clone.root,
        ignore=shutil.ignore_patterns("CHECKLIST*", "STATE.md", "*LOG.md", "BRIEF*"),
    )
    imported = clone.harness("ledger", "import")
    assert imported.exit_code == 0, imported.stderr
    assert clone.projections() == kept.projections()
    assert clone.harness("ledger", "verify").exit_code == 0


@pytest.mark.parametrize("offset", [0, 40, -1])
def test_verify_names_a_changed_fact(kept: Journey, tmp_path: Path, offset: int) -> None:
    import sqlite3

    copy = Journey(tmp_path / "project", tmp_path / "home")
    shutil.copytree(kept.root, copy.root)
    shutil.copytree(kept.home, copy.home)
    assert copy.harness("ledger", "verify").exit_code == 0
    with sqlite3.connect(copy.state / "ledger.db") as database:
        seq, data = database.execute(
            "SELECT seq, data FROM facts ORDER BY seq LIMIT 1 OFFSET 3"
        ).fetchone()
        changed = bytearray(data)
        changed[offset] ^= 1
        database.execute("UPDATE facts SET data = ? WHERE seq = ?", (bytes(changed), seq))
    answer = copy.harness("ledger", "verify", "--json")
    assert answer.exit_code == 1
    assert answer.document["verified"] is False
    assert seq in [problem["seq"] for problem in answer.document["problems"]]


def test_a_changed_plan_is_noticed_and_may_be_approved_again(
    kept: Journey, tmp_path: Path
) -> None:
    copy = Journey(tmp_path / "project", tmp_path / "home")
    shutil.copytree(kept.root, copy.root)
    shutil.copytree(kept.home, copy.home)
    plan = copy.root / "plan.md"
    plan.write_text(plan.read_text("utf-8").replace("must: 0.80", "must: 0.10"), "utf-8")
    answer = copy.harness("gate", "check", "exp-0001", "--gate", "validation", "--json")
    assert answer.exit_code == 1
    assert "plan_changed" in [finding["code"] for finding in answer.document["findings"]]
    assert copy.harness("status", "--json").document["plan"]["changed"] is True
    refused = copy.harness("try", "a change", "--json").document["error"]
    assert refused["code"] == "plan_changed"
    assert "`harness plan approve`" in refused["hint"]
    shown = copy.harness("plan", "approve", "--json")
    assert (shown.exit_code, shown.document["error"]["code"]) == (2, "changes_not_confirmed")
    assert "must: 0.8 -> 0.1" in shown.document["error"]["message"]
    line = re.search(r"--changes (\w+)", shown.document["error"]["hint"])
    assert line is not None
    again = copy.harness("plan", "approve", "--changes", line[1], "--json")
    assert (again.exit_code, again.document["version"]) == (0, 2), again.stderr


def test_compare_is_on_validation_and_needs_both_scores(kept: Journey, tmp_path: Path) -> None:
    copy = Journey(tmp_path / "project", tmp_path / "home")
    shutil.copytree(kept.root, copy.root)
    shutil.copytree(kept.home, copy.home)
    itself = copy.harness("experiment", "compare", "exp-0001", "exp-0001", "--json")
    assert (itself.exit_code, itself.document["error"]["code"]) == (2, "same_experiment")
    assert copy.harness("experiment", "new", "--hypothesis", "untrained").exit_code == 0
    missing = copy.harness("experiment", "compare", "exp-0002", "exp-0001", "--json")
    assert (missing.exit_code, missing.document["error"]["code"]) == (2, "no_score")


def test_show_lists_what_was_launched(kept: Journey) -> None:
    document = kept.harness("experiment", "show", "exp-0001", "--json").document
    assert [run["seed"] for run in document["runs"]] == [
        item["seed"] for item in document["evaluations"][:3]
    ]
    assert len({item["checkpoint"] for item in document["checkpoints"]}) == 3
    assert json.dumps(document)


def test_a_lost_ledger_comes_back_from_the_text_form(kept: Journey, tmp_path: Path) -> None:
    copy = Journey(tmp_path / "project", tmp_path / "home")
    shutil.copytree(kept.root, copy.root)
    shutil.copytree(kept.home, copy.home)
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (copy.state / name).unlink(missing_ok=True)
    refused = copy.harness("experiment", "list", "--json")
    assert (refused.exit_code, refused.document["error"]["code"]) == (2, "ledger_missing")
    imported = copy.harness("ledger", "import", "--json")
    assert imported.exit_code == 0, imported.stderr
    assert copy.projections() == kept.projections()
    assert copy.harness("ledger", "verify").exit_code == 0


def test_the_checklist_shows_the_oracles_first_shortfall(kept: Journey) -> None:
    assert SHORTFALL in checklist(kept)


def test_what_is_written_after_the_decision_is_shown_and_not_recorded(
    kept: Journey, tmp_path: Path
) -> None:
    copy = Journey(tmp_path / "project", tmp_path / "home")
    shutil.copytree(kept.root, copy.root)
    shutil.copytree(kept.home, copy.home)
    result = copy.root / ".harness/experiments/exp-0001/result.md"
    result.write_text(result.read_text("utf-8").replace(SHORTFALL, "none at all"), "utf-8")
    answer = copy.harness("gate", "check", "exp-0001", "--gate", "validation", "--json")
    assert (answer.exit_code, answer.document["recorded"]) == (0, False)
    result.unlink()
    words = copy.harness("gate", "check", "exp-0001", "--gate", "validation")
    assert words.exit_code == 1
    assert "result.md" in words.stdout
    assert "exp-0001 is already decided: its verdict stands, nothing was recorded." in words.stdout
    assert copy.projections() == kept.projections()


def test_a_clone_without_checkpoints_looks_and_leaves_the_verdict(
    kept: Journey, tmp_path: Path
) -> None:
    clone = Journey(tmp_path / "clone", tmp_path / "home")
    clone.home.mkdir()
    shutil.copytree(kept.root, clone.root, ignore=shutil.ignore_patterns("checkpoints", "data"))
    assert clone.harness("ledger", "import").exit_code == 0
    answer = clone.harness("gate", "check", "exp-0001", "--json")
    assert (answer.exit_code, answer.document["verdict"], answer.document["recorded"]) == (
        1,
        "FAIL",
        False,
    )
    codes = {finding["code"] for finding in answer.document["findings"]}
    assert {"checkpoint_changed", "data_not_here"} <= codes
    assert clone.harness("ledger", "export").exit_code == 0
    assert clone.projections() == kept.projections()
    (row,) = clone.harness("experiment", "list", "--json").document["experiments"]
    assert (row["status"], row["verdict"], row["findings"]) == ("kept", "PASS", [])


@pytest.mark.parametrize("more", [(), ("--override",)])
def test_what_is_kept_is_kept_already(kept: Journey, more: tuple[str, ...]) -> None:
    before = kept.projections()
    answer = kept.harness("gate", "approve", "exp-0001", "--reason", "again", *more, "--json")
    assert (answer.exit_code, answer.document["error"]["code"]) == (2, "already_kept")
    assert kept.projections() == before


def test_a_rejected_one_is_neither_rejected_again_nor_approved(
    kept: Journey, tmp_path: Path
) -> None:
    copy = Journey(tmp_path / "project", tmp_path / "home")
    shutil.copytree(kept.root, copy.root)
    shutil.copytree(kept.home, copy.home)
    assert (
        copy.harness("gate", "reject", "exp-0001", "--reason", "on second thoughts").exit_code == 0
    )
    before = copy.projections()
    for verb in ("reject", "approve"):
        answer = copy.harness("gate", verb, "exp-0001", "--reason", "again", "--json")
        assert (answer.exit_code, answer.document["error"]["code"]) == (2, "already_discarded")
    assert copy.projections() == before
