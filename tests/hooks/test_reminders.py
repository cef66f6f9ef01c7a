"""Stop and SubagentStop ask once for what the model can do, and let go."""

import json
from typing import Any

import pytest
from hook_project import HookProject

RESULT = ".harness/experiments/exp-0002/result.md"


def with_runs(project: HookProject, **changes: Any) -> HookProject:
    current = {
        "id": "exp-0002",
        "hypothesis": "h",
        "status": "running",
        "runs": 2,
        "ended": 2,
        **changes,
    }
    project.save(
        {**project.snapshot, "mode": "interactive", "role": None, "open_experiment": current}
    )
    return project


def reminded(project: HookProject, **fields: Any) -> bool:
    due = project.event("Stop", stop_hook_active=False, **fields).due
    assert bool(due) == ("harness gate check exp-0002" in due)
    return bool(due)


def test_ended_runs_without_a_verdict_are_asked_for(project: HookProject):
    assert reminded(with_runs(project))
    (line,) = project.receipts()
    assert (line["event"], line["rule"]) == ("Stop", "runs_not_judged")


@pytest.mark.parametrize(
    "changes",
    [{"status": "judged"}, {"runs": 0, "ended": 0}, {"runs": 3}, {"ended": None}, {"ended": "2"}],
    ids=repr,
)
def test_nothing_is_asked_that_the_model_cannot_do(project: HookProject, changes: dict):
    assert not reminded(with_runs(project, **changes))
    assert project.receipts() == []


def test_without_an_open_experiment_nothing_is_due(project: HookProject):
    project.save(
        {**project.snapshot, "mode": "interactive", "role": None, "open_experiment": None}
    )
    assert not reminded(project)


def test_once_a_turn_and_twice_a_session(project: HookProject):
    with_runs(project)
    assert reminded(project)
    assert project.event("Stop", stop_hook_active=True).said == {}
    assert reminded(project)
    assert [reminded(project) for _ in range(3)] == [False] * 3
    assert reminded(project, session="s-2")


def test_the_count_survives_a_damaged_line(project: HookProject):
    with_runs(project)
    assert reminded(project)
    with (project.root / ".harness/receipts/s-1.jsonl").open("ab") as file:
        file.write(b'\xff{"event": "Stop", "rule"')
    assert reminded(project)
    assert not reminded(project)


def test_a_session_that_cannot_leave_a_receipt_may_end(project: HookProject):
    with_runs(project)
    (project.root / ".harness/receipts/s-1.jsonl").mkdir()
    answer = project.event("Stop", stop_hook_active=False)
    assert (answer.code, answer.output) == (0, "")


def subagent(project: HookProject, role: str | None, **fields: Any) -> str:
    named = {} if role is None else {"agent_type": role, "agent_id": "a1"}
    return project.event("SubagentStop", stop_hook_active=False, **named, **fields).due


def test_a_roles_missing_artifacts_are_asked_of_its_own_subagent(project: HookProject):
    assert RESULT in subagent(project, "oracle")
    assert RESULT in subagent(project, "harness:oracle")
    assert subagent(project, "oracle") == "", "twice a session"
    due = subagent(project, "model-builder")
    assert "config.yaml" in due
    assert "hypothesis.md" not in due
    project.write(RESULT)
    assert subagent(project, "oracle", session="s-2") == ""


@pytest.mark.parametrize("role", ["general-purpose", "main", None, "", "trainer"])
def test_other_subagents_are_not_asked(project: HookProject, role: str | None):
    if role == "main":
        project.write(".harness/experiments/exp-0002/hypothesis.md")
    assert subagent(project, role) == ""


def test_a_subagent_that_goes_on_already_is_let_go(project: HookProject):
    payload = {
        "session_id": "s-1",
        "cwd": str(project.root),
        "agent_type": "oracle",
        "stop_hook_active": True,
    }
    assert project.start("SubagentStop", json.dumps(payload).encode()).said == {}


def briefed(project: HookProject, role: str | None) -> str:
    named = {} if role is None else {"agent_type": role, "agent_id": "a1"}
    return project.event("SubagentStart", **named).context


def test_a_roles_subagent_is_told_where_it_is_and_what_it_may_write(project: HookProject):
    project.save({**project.snapshot, "role": None, "standing": {"next": "train"}})
    for role in ("oracle", "harness:oracle"):
        text = briefed(project, role)
        assert text.startswith("harness: you are the oracle; exp-0002 is open.")
        assert f"You may write {RESULT}." in text
        assert "What is due in the project: train." in text
        assert str(project.root / ".harness/memory/BRIEFING.md") in text
    builder = briefed(project, "model-builder")
    assert "config.yaml" in builder
    assert "the project's ordinary files" in builder
    assert project.receipts() == []


def test_a_subagent_of_a_project_without_an_experiment_or_an_older_snapshot(project: HookProject):
    roles = {**project.snapshot["roles"], "oracle": {"tools": [], "writes": [], "code": False}}
    project.save({**project.snapshot, "role": None, "open_experiment": None, "roles": roles})
    text = briefed(project, "oracle")
    assert "no experiment is open. You write no file." in text
    assert "due" not in text


@pytest.mark.parametrize("role", ["general-purpose", None, "", "trainer"])
def test_other_subagents_are_told_nothing(project: HookProject, role: str | None):
    assert briefed(project, role) == ""
