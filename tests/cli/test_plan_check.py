"""`harness plan check`: every problem in one document, and the words that approval would say."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from harness.contract.roles import HOW_TO_DECIDE
from tests.cli.journey import Again, Journey, blobs


@pytest.fixture(scope="module")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Again:
    return Again(tmp_path_factory.mktemp("again"), ("init",))


@pytest.fixture
def journey(initialised: Again) -> Journey:
    return initialised.journey()


def kept(folder: Path) -> list[Path]:
    """All but what SQLite makes to read a database."""
    return sorted(path for path in folder.rglob("*") if path.suffix not in (".db-shm", ".db-wal"))


def test_what_approval_would_refuse_is_said_without_touching_anything(journey: Journey) -> None:
    held_out = journey.root / "data" / "held_out.npz"
    shutil.copy(held_out, journey.root / "data" / "copy.npz")
    (journey.root / "data" / "validation.npz").unlink()
    (journey.root / "train.py").unlink()
    state = kept(journey.home)
    answer = journey.harness("plan", "check", "--json")
    assert answer.exit_code == 2
    document = answer.document
    assert (document["plan"], document["valid"]) == ("plan.md", False)
    assert [problem["code"] for problem in document["problems"]] == [
        "plan_invalid",
        "held_out_copied",
    ]
    assert all(problem["message"] and problem["hint"] for problem in document["problems"])
    assert [finding["code"] for finding in document["findings"]] == ["script_not_in_place"]
    assert held_out.exists()
    assert kept(journey.home) == state
    approval = journey.harness("plan", "approve", "--json")
    assert approval.exit_code == 2
    assert approval.document == {"error": document["error"]}
    assert "2 problems" in document["error"]["message"]
    spoken = journey.harness("plan", "check")
    assert (spoken.exit_code, spoken.stdout) == (2, "")
    assert "data/copy.npz" in spoken.stderr
    assert "train.py, which is not in the project" in spoken.stderr


def test_a_sound_plan_can_be_approved(journey: Journey) -> None:
    answer = journey.harness("plan", "check", "--json")
    assert answer.exit_code == 0
    document = answer.document
    power, predictions = document.pop("power"), document.pop("predictions")
    assert predictions.startswith("predictions: `id` and `prediction` (a class)")
    assert document == {"plan": "plan.md", "valid": True, "problems": [], "findings": []}
    assert (power["gain"], power["seeds"]) == (0.02, 3)
    assert 0 < power["power"] < 0.5
    spoken = journey.harness("plan", "check").stdout
    assert "power: a gain of 0.02 is found in " in spoken
    assert "(assumed: two seeds of one experiment answer 10% of the rows differently" in spoken
    assert journey.harness("plan", "approve").exit_code == 0
    plan = journey.harness("status", "--json").document["plan"]
    assert (plan["workflow"], plan["gates"]) == ("classical-ml", "auto")
    assert "(plan.md): classical-ml, gates auto" in journey.harness("status").stdout
    again = journey.harness("plan", "check", "--json")
    assert (again.exit_code, again.document["problems"]) == (0, [])
    unchanged = journey.harness("plan", "check").stdout
    assert unchanged.startswith("plan.md is approved as version 1, unchanged.")
    assert "plan approve" not in unchanged
    file = journey.root / "plan.md"
    file.write_text(file.read_text().replace("seeds: 3", "seeds: 4"))
    assert journey.harness("plan", "check").stdout.startswith("plan.md can be approved.")


def test_a_draft_is_checked_and_approved_by_its_own_name(journey: Journey) -> None:
    assert journey.harness("plan", "approve").exit_code == 0
    (journey.root / "plans").mkdir()
    draft = journey.root / "plans" / "plan.draft.md"
    draft.write_text((journey.root / "plan.md").read_text().replace("seeds: 3", "seeds: 4"))
    checked = journey.harness("plan", "check", "plans/plan.draft.md")
    assert "`harness plan approve plans/plan.draft.md`" in checked.stdout
    refused = journey.harness("plan", "approve", "plans/plan.draft.md")
    assert (refused.exit_code, "oracle.seeds: 3 -> 4" in refused.stderr) == (2, True)
    words = refused.stderr.rpartition("`harness ")[2].split("`")[0].split()
    assert words[:3] == ["plan", "approve", "plans/plan.draft.md"]
    done = journey.harness(*words)
    assert (done.exit_code, draft.exists()) == (0, False), done.stderr
    assert "plans/plan.draft.md is now plan.md" in done.stdout
    assert journey.harness("status", "--json").document["plan"]["version"] == 2
    snapshot = json.loads((journey.root / ".harness" / "policy.json").read_text())
    assert list(snapshot["plans"]) == ["plan.md"]


def test_the_judge_checks_a_copy_under_the_plans_own_name(journey: Journey) -> None:
    copy = journey.home / "plan.md"
    copy.write_text((journey.root / "plan.md").read_text())
    (journey.root / "plan.md").unlink()
    answer = journey.harness("plan", "check", f"--copy={copy}", "--", "plan.md")
    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout.startswith("plan.md can be approved.")
    assert f"`harness plan approve plan.md`. {HOW_TO_DECIDE}" in answer.stdout


def test_approval_says_what_the_check_says_and_what_comes_next(journey: Journey) -> None:
    (journey.root / "train.py").unlink()
    answer = journey.harness("plan", "approve")
    assert answer.exit_code == 0, answer.stderr
    assert "train.py, which is not in the project" in answer.stdout
    assert "next: try an idea: `harness try" in answer.stdout
    again = journey.harness("plan", "approve", "--json").document
    assert [finding["code"] for finding in again["findings"]] == ["script_not_in_place"]


def test_a_scorer_that_finds_everybody_right_is_refused_by_check_and_approval(
    journey: Journey,
) -> None:
    plan = journey.root / "plan.md"
    plan.write_text(plan.read_text().replace("scorer: accuracy", "scorer: judge.py"))
    (journey.root / "judge.py").write_text("def score(labels, predictions):\n    return 1.0\n")
    for verb in ("check", "approve"):
        answer = journey.harness("plan", verb, "--json")
        assert answer.exit_code == 2
        assert answer.document["error"]["code"] == "scorer_rewards_anything"
        assert "judge.py" in answer.document["error"]["message"]
        assert answer.document["error"]["hint"]
    assert (journey.root / "data" / "held_out.npz").exists()


@pytest.mark.parametrize("copied", [1, 30])
def test_a_person_is_told_of_rows_of_held_out_and_an_agent_nothing(
    journey: Journey, copied: int
) -> None:
    """Else an agent could ask for one row after another whether held-out has it: it drafts the plan
    and writes the training rows. A word like "some" is a bit each time too."""
    assert journey.harness("plan", "approve").exit_code == 0
    train, held_out = blobs(400, 1), blobs(200, 3)
    for name in ("x", "y"):
        train[name][:copied] = held_out[name][:copied]
    np.savez(journey.root / "data" / "train.npz", **train)
    counted = [
        one
        for one in journey.harness("plan", "check", "--json").document["findings"]
        if one["code"] == "splits_overlap" and one["data"]["second"] == "held_out"
    ]
    assert [one["data"]["rows"] for one in counted] == [copied]
    asked = journey.harness("plan", "check", "--json", CLAUDECODE="1").document
    about = [one for one in asked["findings"] if one["data"].get("second") == "held_out"]
    assert about == []
    kept = [one for one in asked["findings"] if one["code"] == "splits_not_compared"]
    assert [one["data"]["splits"] for one in kept] == [["held_out"]]
