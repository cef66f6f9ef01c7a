"""`harness audit` as a person runs it, from a fresh project to a guard that was killed."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harness.clock import iso
from harness.contract.roles import HUMAN_VERBS
from harness.guard.policy.decide import decide
from tests.cli.journey import Again, Journey
from tests.guard.policy.policy_project import SampleProject
from tests.traces.rows import Transcript

SETTINGS = ".claude/settings.json"


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Again:
    return Again(tmp_path_factory.mktemp("again"), ("init",), ("plan", "approve", "plan.md"))


@pytest.fixture
def approved(again: Again) -> Journey:
    return again.journey()


def audit(journey: Journey, *words: str) -> tuple[int, dict[str, Any]]:
    answer = journey.harness("audit", "--json", *words)
    return answer.exit_code, answer.document


def kill_the_guard(journey: Journey, folder: Path) -> None:
    """A session empties the settings through a program; nothing is hooked from then on."""
    lines = Transcript(folder / "x" / "s1.jsonl", session="s1", cwd=journey.root)
    lines.call("t1", "Bash", iso(datetime.now(UTC)), command=f"D=.claude; echo x > {SETTINGS}")
    path = journey.root / SETTINGS
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"disableAllHooks": true}', "utf-8")
    lines.result("t1", at=iso(datetime.now(UTC)))


def test_a_start_is_not_recorded_beside_an_acceptance(approved: Journey) -> None:
    before = approved.projections()
    both = approved.harness("audit", "--accept", "--began", "s1")
    assert (both.exit_code, "do not go together" in both.stderr) == (2, True)
    assert approved.projections() == before


def test_a_killed_guard_is_named_and_a_person_accepts_what_is_meant(
    approved: Journey, tmp_path: Path
) -> None:
    assert audit(approved)[0] == 0
    kill_the_guard(approved, tmp_path / "transcripts")
    code, document = audit(approved, "--transcripts", str(tmp_path / "transcripts"))
    assert code == 1
    assert document["clean"] is False
    (change,) = document["changes"]
    assert (change["kind"], change["path"], change["covered"]) == ("control", SETTINGS, True)
    (session,) = change["sessions"]
    assert session["session"] == "s1"
    assert session["confidence"] == "certain: a call that names it ran when it changed"
    assert [call["tool_use_id"] for call in session["calls"]] == ["t1"]
    (call,) = document["unguarded"]
    assert (call["session"], call["tool_use_id"], call["rule"]) == ("s1", "t1", "protected_path")
    assert call["guard"] == "left no receipt"
    accepted = approved.harness("audit", "--accept", "--json")
    assert (accepted.exit_code, accepted.document["changed"]) == (0, [SETTINGS])
    assert accepted.document["accepted"]["by"].startswith("human:")
    assert audit(approved, "--transcripts", str(tmp_path / "transcripts"))[0] == 0


def test_the_transcripts_of_the_cli_are_looked_at_by_default(
    approved: Journey, tmp_path: Path
) -> None:
    kill_the_guard(approved, tmp_path / "config" / "projects")
    answer = approved.harness("audit", CLAUDE_CONFIG_DIR=str(tmp_path / "config"))
    assert answer.exit_code == 1
    assert f"{SETTINGS} sets disableAllHooks, which switches every hook off;" in answer.stdout
    assert (
        "session s1, certain: a call that names it ran when it changed: Bash t1 at"
        in answer.stdout
    )
    assert "harness audit --accept" in answer.stdout
    kill_the_guard(approved, approved.home / ".claude" / "projects")
    assert audit(approved)[1]["sessions"] == 1


def test_without_any_witness_it_says_so(approved: Journey) -> None:
    text = (approved.root / SETTINGS).read_text("utf-8")
    (approved.root / SETTINGS).write_text("{ }\n{}", "utf-8")
    answer = approved.harness("audit")
    assert answer.exit_code == 1
    assert "no session's receipts or transcript covers it" in answer.stdout
    (approved.root / SETTINGS).write_text(text, "utf-8")


def test_accepting_is_a_persons_verb(approved: Journey) -> None:
    refused = approved.harness("audit", "--accept", "--json", CLAUDECODE="1")
    assert (refused.exit_code, refused.document["error"]["code"]) == (2, "human_verb")
    assert audit(approved)[0] == 0


def test_what_was_accepted_and_is_damaged_is_named_and_can_be_accepted_anew(
    approved: Journey,
) -> None:
    (accepted,) = approved.state.rglob("accepted.json")
    assert json.loads(accepted.read_text("utf-8"))["by"].startswith("human:")
    accepted.write_text("{", "utf-8")
    code, document = audit(approved)
    assert (code, document["error"]["code"]) == (2, "accepted_damaged")
    assert approved.harness("audit", "--accept").exit_code == 0
    assert audit(approved)[0] == 0


@pytest.mark.parametrize(
    ("command", "permission"),
    [
        ("harness audit --json", "allow"),
        ("harness audit --accept", "deny"),
        ("harness --json audit --project . --accept", "deny"),
        ("python -m harness audit --json --accept", "deny"),
        ("harness audit -- --accept", "deny"),
    ],
)
def test_the_policy_lets_agents_look_and_not_accept(
    tmp_path: Path, command: str, permission: str
) -> None:
    project = SampleProject(tmp_path)
    call = {"tool_name": "Bash", "tool_input": {"command": command}, "cwd": str(project.root)}
    snapshot = {**project.snapshot, "human_verbs": [list(verb) for verb in HUMAN_VERBS]}
    assert decide(call, snapshot)["permission"] == permission
