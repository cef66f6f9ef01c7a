"""The guard around tool calls: said out loud, with a receipt, closed when it cannot decide."""

import json
from typing import Any

import anyio
import pytest

from harness.contract.roles import ROLE_BY_NAME
from harness.domain.statuses import SandboxKind
from harness.driver.callbacks import Guard
from harness.driver.environment import session_folders
from harness.driver.tool_context import ToolContext
from harness.guard.shell import tree_reader as bash_tree
from harness.ledger.project import Project
from harness.rendering.policy_snapshot import policy_snapshot


def guard_of(
    project: Project,
    role: str,
    *,
    sandbox: SandboxKind = SandboxKind.BWRAP,
    told: list[Any] | None = None,
) -> Guard:
    context = ToolContext(project, session="s-1", role=ROLE_BY_NAME[role], sandbox=sandbox)
    on_call = (lambda *call: told.append(call)) if told is not None else (lambda *_call: None)
    return Guard(context, snapshot=lambda: policy_snapshot(project, role=role), on_call=on_call)


def ask(guard: Guard, project: Project, tool: str, **given: Any) -> dict[str, Any]:
    payload = {
        "tool_name": tool,
        "tool_input": given,
        "cwd": str(project.layout.root),
        "tool_use_id": "t-1",
    }
    answer: dict[str, Any] = anyio.run(guard.before_tool, payload, "t-1", None)
    return dict(answer["hookSpecificOutput"])


def receipts(project: Project) -> list[dict[str, Any]]:
    path = project.layout.project("receipts") / "s-1.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_an_ordinary_write_is_allowed_out_loud_and_leaves_a_receipt(project: Project) -> None:
    told: list[Any] = []
    said = ask(
        guard_of(project, "model-builder", told=told),
        project,
        "Write",
        file_path="train.py",
        content="x",
    )
    assert said["permissionDecision"] == "allow"
    (line,) = receipts(project)
    assert (line["tool"], line["permission"], line["role"]) == ("Write", "allow", "model-builder")
    assert [call[2] for call in told] == ["allow"]


def test_the_next_version_of_the_plan_is_drafted_beside_it(project: Project) -> None:
    guard = guard_of(project, "model-builder")
    denied = ask(guard, project, "Write", file_path="plan.md", content="x")
    assert denied["permissionDecision"] == "deny"
    assert "plans/plan.draft.md" in denied["permissionDecisionReason"]
    drafted = ask(guard, project, "Write", file_path="plans/plan.draft.md", content="x")
    assert drafted["permissionDecision"] == "allow"


@pytest.mark.parametrize(
    ("role", "tool", "given"),
    [
        ("model-builder", "Bash", {"command": "python train.py"}),
        ("model-builder", "Write", {"file_path": "plan.md", "content": "x"}),
        ("model-builder", "Write", {"file_path": ".harness/policy.json", "content": "{}"}),
        ("model-builder", "mcp__harness__record_result", {"summary": "s"}),
        ("oracle", "Write", {"file_path": "train.py", "content": "x"}),
        ("oracle", "mcp__harness__start_run", {}),
    ],
)
def test_what_the_policy_forbids_is_denied_with_reason_and_next_step(
    project: Project, role: str, tool: str, given: dict[str, Any]
) -> None:
    said = ask(guard_of(project, role), project, tool, **given)
    assert said["permissionDecision"] == "deny"
    assert len(said["permissionDecisionReason"]) > 40
    assert receipts(project)[0]["permission"] == "deny"


def test_what_only_the_tree_reader_sees_through_is_denied(project: Project) -> None:
    said = ask(
        guard_of(project, "model-builder"),
        project,
        "Bash",
        command="case go in go) python train.py;; esac",
    )
    assert said["permissionDecision"] == "deny"
    assert receipts(project)[0]["rule"] == "training_outside_harness"


def test_without_the_tree_reader_commands_are_denied_and_the_reason_says_so(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    bash_tree._parser.cache_clear()
    monkeypatch.setattr(bash_tree, "_MISSING", ImportError("No module named 'tree_sitter'"))
    guard = guard_of(project, "model-builder")
    said = ask(guard, project, "Bash", command="ls")
    assert said["permissionDecision"] == "deny"
    assert "tree_sitter" in said["permissionDecisionReason"]
    assert receipts(project)[0]["rule"] == "reader_missing"
    assert (
        ask(guard, project, "Write", file_path="train.py", content="x")["permissionDecision"]
        == "allow"
    )


def test_the_state_directory_is_denied_also_to_a_read(project: Project) -> None:
    said = ask(
        guard_of(project, "oracle"), project, "Read", file_path=str(project.layout.ledger_db)
    )
    assert said["permissionDecision"] == "deny"


@pytest.mark.parametrize(
    ("sandbox", "rule"),
    [(SandboxKind.NONE, "unsandboxed"), (SandboxKind.BWRAP, "outside_project")],
)
def test_no_opinion_is_allowed_and_the_receipt_says_when_there_was_no_sandbox(
    project: Project, sandbox: SandboxKind, rule: str
) -> None:
    said = ask(
        guard_of(project, "model-builder", sandbox=sandbox),
        project,
        "Read",
        file_path="/etc/hostname",
    )
    assert said["permissionDecision"] == "allow"
    assert receipts(project)[0]["rule"] == rule


def test_a_call_without_a_receipt_does_not_go_through(project: Project) -> None:
    project.layout.project("receipts").write_text("in the way", "utf-8")
    with pytest.raises(OSError, match="receipts"):
        ask(
            guard_of(project, "model-builder"), project, "Write", file_path="train.py", content="x"
        )


def test_the_guard_blocks_on_its_own_failure_and_observers_do_not(project: Project) -> None:
    hooks = guard_of(project, "oracle").hooks()
    assert {event: matchers[0].on_failure for event, matchers in hooks.items()} == {
        "PreToolUse": "block",
        "PostToolUse": None,
        "PostToolUseFailure": None,
        "PreCompact": None,
        "Stop": None,
    }


def test_a_role_is_reminded_once_of_what_it_owes(project: Project) -> None:
    guard = guard_of(project, "model-builder")
    first = anyio.run(guard.before_stop, {"stop_hook_active": False}, None, None)
    assert first["decision"] == "block"
    assert "start_run" in first["reason"]
    assert anyio.run(guard.before_stop, {"stop_hook_active": False}, None, None) == {}


def test_a_role_that_did_its_work_may_stop(project: Project) -> None:
    context = ToolContext(
        project, session="s-1", role=ROLE_BY_NAME["oracle"], sandbox=SandboxKind.BWRAP
    )
    context.done.add("record_result")
    guard = Guard(context, snapshot=dict)
    assert anyio.run(guard.before_stop, {"stop_hook_active": False}, None, None) == {}


def test_before_a_compaction_the_session_hands_over_and_is_told_with_its_next_call(
    project: Project,
) -> None:
    guard = guard_of(project, "model-builder")
    kept = session_folders(project.layout, "s-1").config / "projects" / "p"
    kept.mkdir(parents=True)
    wrote = {"file_path": f"{project.layout.root}/train.py"}
    call = {"type": "tool_use", "id": "t-1", "name": "Write", "input": wrote}
    rows: list[Any] = [
        ("assistant", [{"type": "text", "text": "Two centres will do."}, call]),
        ("user", [{"type": "tool_result", "tool_use_id": "t-1", "content": "written"}]),
    ]
    lines = [
        json.dumps({"type": kind, "uuid": kind, "message": {"role": kind, "content": content}})
        for kind, content in rows
    ]
    (kept / "5b0c.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    before_compaction = guard.hooks()["PreCompact"][0].hooks[0]
    payload: Any = {"trigger": "auto"}
    no_signal: Any = None
    assert anyio.run(before_compaction, payload, None, no_signal) == {}
    (left,) = project.ledger.hand_offs()
    assert left.session == "s-1"
    for words in ("context summarised", "Done: wrote train.py.", "words: Two centres will do."):
        assert words in left.text
    result = {"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {}}
    said = anyio.run(guard.after_tool, result, "t-2", None)
    assert left.text in said["hookSpecificOutput"]["additionalContext"]
    assert anyio.run(guard.after_tool, result, "t-3", None) == {}


def test_a_hand_off_that_fails_at_a_compaction_leaves_a_receipt(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_words: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.driver.handing_over.summarised", fails)
    guard = guard_of(project, "model-builder")
    payload: Any = {"trigger": "auto"}
    no_signal: Any = None
    assert anyio.run(guard.before_compaction, payload, None, no_signal) == {}
    (line,) = receipts(project)
    assert (line["event"], line["rule"]) == ("PreCompact", "hook_failed")
    assert "No space left" in line["error"]
    result = {"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {}}
    assert anyio.run(guard.after_tool, result, "t-2", None) == {}
