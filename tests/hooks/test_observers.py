"""PostToolUse and PostToolBatch note what happened; the model hears of a changed control file."""

import hashlib
import json
import os
from typing import Any

import pytest
from hook_project import HookProject


def after(project: HookProject, session: str = "s-1") -> str:
    """What the model is told after one more call."""
    given = {
        "tool_name": "Bash",
        "tool_input": {"command": "python3 w.py"},
        "tool_use_id": "toolu_1",
    }
    return project.event(
        "PostToolUse", session=session, tool_response={"stdout": "a secret"}, **given
    ).context


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (".claude/settings.json", ".claude/settings.json"),
        (".claude/settings.local.json", ".claude/settings.local.json"),
        (".harness/config.toml", ".harness/config.toml"),
        ("plan.md", "plan.md"),
        (".claude/hooks/harness/mcp.py", ".claude/hooks/harness"),
        (".claude/hooks/harness/lib/harness/guard/policy/git.py", ".claude/hooks/harness"),
        (".claude/hooks/harness/lib/harness/guard/hooks/new.py", ".claude/hooks/harness"),
    ],
)
def test_a_changed_control_file_is_told_once(project: HookProject, name: str, shown: str):
    assert after(project) == ""
    path = project.root / name
    before = path.read_text() if path.exists() else ""
    project.write(name, before + "\n# changed\n")
    text = after(project)
    assert text.startswith(f"harness: {shown} changed")
    assert "harness audit" in text
    assert after(project) == ""
    line = project.receipts()[1]
    assert (line["rule"], line["paths"]) == ("control_changed", [shown])
    assert line["control"][shown] != project.receipts()[0]["control"][shown]


CONTROL = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/agents",
    ".claude",
    ".mcp.json",
    ".git/hooks",
    ".git/config",
    ".git",
    ".harness/config.toml",
    "plans",
    ".harness/plan.md",
    "plans/gone.md",
]


@pytest.fixture
def listed(project: HookProject) -> HookProject:
    """With a snapshot that says which files control it."""
    project.save({**project.snapshot, "mode": "interactive", "role": None, "control": CONTROL})
    return project


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (".claude/settings.json", ".claude/settings.json"),
        (".claude/agents/oracle.md", ".claude/agents"),
        (".claude/agents/deep/er.md", ".claude/agents"),
        (".claude/skills/x/SKILL.md", ".claude"),
        (".claude/commands/x.md", ".claude"),
        (".claude/hooks/harness/mcp.py", ".claude/hooks/harness"),
        (".mcp.json", ".mcp.json"),
        (".git/hooks/post-commit", ".git/hooks"),
        (".git/config", ".git/config"),
        (".harness/plan.md", ".harness/plan.md"),
        (".harness/config.toml", ".harness/config.toml"),
        ("plans/gone.md", "plans/gone.md"),
        ("plans/other.md", "plans"),
    ],
)
def test_each_control_path_of_the_snapshot_is_told(listed: HookProject, name: str, shown: str):
    assert after(listed) == ""
    path = listed.root / name
    listed.write(
        name, (path.read_text() if path.exists() else "") + "[core]\n\tfsmonitor = evil\n"
    )
    assert after(listed).startswith(f"harness: {shown} changed")
    assert listed.receipts()[1]["paths"] == [shown]
    if name == ".harness/config.toml":
        return  # without it there is no project to tell of: the guard then denies every call
    path.unlink()
    assert after(listed).startswith(f"harness: {shown} changed")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".claude/settings.local.json", '{"permissions": {"allow": ["Bash(ls)"]}}'),
        (".claude/settings.local.json", '{"enabledMcpjsonServers": ["x"], "nextYear": 1}'),
        (".claude/worktrees/agent-1/.claude/settings.json", "{}"),
        (
            ".git/config",
            'before\n[branch "x"]\n\tremote = origin\n[remote "origin"]\n\turl = /elsewhere\n',
        ),
        (".git/index", "x"),
        (".claude/empty.md", ""),
    ],
)
def test_what_the_audit_leaves_out_is_not_told_either(listed: HookProject, name: str, text: str):
    (listed.root / ".claude/empty.md").unlink(missing_ok=True)
    assert after(listed) == ""
    listed.write(name, text)
    assert after(listed) == ""


def test_a_path_that_was_not_looked_at_before_has_not_changed(project: HookProject):
    assert after(project) == ""
    project.save({**project.snapshot, "mode": "interactive", "role": None, "control": CONTROL})
    assert after(project) == ""
    project.write(".mcp.json", "{}")
    assert ".mcp.json changed" in after(project)


def test_a_plan_that_a_person_approved_meanwhile_has_not_changed(listed: HookProject):
    listed.write("plans/gone.md", "one\n")
    assert after(listed) == ""
    text = "two\n"
    listed.write("plans/gone.md", text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    listed.save({**listed.snapshot, "control": CONTROL, "plans": {"plans/gone.md": digest}})
    assert after(listed) == ""
    listed.write("plans/gone.md", "three\n")
    assert after(listed).startswith("harness: plans/gone.md changed")


def test_hostile_control_paths_stall_no_call(listed: HookProject):
    os.mkfifo(listed.root / ".claude" / "pipe")
    (listed.root / ".claude" / "round").symlink_to(".")
    with (listed.root / ".claude" / "large").open("wb") as file:
        file.truncate(1 << 36)
    assert after(listed) == ""
    listed.save(
        {
            **listed.snapshot,
            "mode": "interactive",
            "role": None,
            "control": ["a\0b", "..", ".claude"],
        }
    )
    assert after(listed) == ""


def test_the_start_of_the_session_is_what_it_is_compared_with(project: HookProject):
    project.event("SessionStart", source="startup")
    (project.root / ".claude/settings.json").unlink()
    assert ".claude/settings.json changed" in after(project)
    assert after(project, session="s-2") == ""


def test_ordinary_files_are_not_told(project: HookProject):
    assert after(project) == ""
    project.write("train.py", "x")
    project.write(".harness/experiments/exp-0002/hypothesis.md", "x")
    assert after(project) == ""
    assert "a secret" not in (project.root / ".harness/receipts/s-1.jsonl").read_text()


def test_the_last_digests_are_found_far_back(project: HookProject):
    """Behind more than a block of other receipts, and behind a torn line."""
    assert after(project) == ""
    project.write("plan.md", "changed\n")
    with (project.root / ".harness/receipts/s-1.jsonl").open("a") as file:
        file.writelines(
            json.dumps({"event": "PreToolUse", "paths": ["x" * 500]}) + "\n" for _ in range(500)
        )
        file.write('{"torn')
    assert "plan.md changed" in after(project)


def batch(project: HookProject, *calls: Any, **fields: Any) -> list[dict[str, Any]]:
    answer = project.event("PostToolBatch", tool_calls=list(calls), **fields)
    assert (answer.code, answer.output, answer.errors) == (0, "", "")
    return [line for line in project.receipts() if line["rule"] == "unhooked"]


def call(identity: str, tool: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"tool_name": tool, "tool_input": given, "tool_use_id": identity, "tool_response": "ok"}


def test_calls_that_no_guard_saw_are_noted(project: HookProject):
    project.shell("ls", identity="toolu_1")
    project.call("Write", {"file_path": "plan.md"}, identity="toolu_2")
    assert batch(project, call("toolu_1"), call("toolu_2")) == []
    lines = batch(
        project, call("toolu_3", "Write", file_path="a.py"), call("toolu_1"), agent_type="oracle"
    )
    assert [
        (line["tool_use_id"], line["tool"], line["paths"], line["role"]) for line in lines
    ] == [("toolu_3", "Write", ["a.py"], "oracle")]


def test_a_later_event_about_a_call_is_no_sign_of_a_guard(project: HookProject):
    after(project)
    assert [line["tool_use_id"] for line in batch(project, call("toolu_1"))] == ["toolu_1"]


@pytest.mark.parametrize(
    "calls", [None, {}, "x", [], [None], [3], [{}], [{"tool_use_id": 3}]], ids=repr
)
def test_a_batch_of_another_form_is_passed_over(project: HookProject, calls):
    answer = project.event("PostToolBatch", tool_calls=calls)
    assert (answer.code, answer.output, answer.errors) == (0, "", "")


@pytest.mark.parametrize("event", ["PostToolUse", "PostToolBatch", "SessionEnd"])
def test_a_receipt_that_cannot_be_written_blocks_nothing(project: HookProject, event: str):
    (project.root / ".harness/receipts/s-1.jsonl").mkdir()
    answer = project.event(event, tool_calls=[call("toolu_9")], tool_name="Bash", tool_input={})
    assert (answer.code, answer.output) == (0, "")
    assert "Traceback" not in answer.errors
