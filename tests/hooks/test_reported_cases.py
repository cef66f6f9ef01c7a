"""Faults that people have reported of hooks, each with the input that showed it."""

import json
import os
import shutil
from pathlib import Path

import pytest
from hook_project import PREFIX, PYTHON, HookProject, git

from harness.guard.hooks.table import EVENTS, GUARD, hooks_section

INPUTS = Path(__file__).parent / "inputs"
OLD_RUN = ".harness/experiments/exp-0001/runs/run-01"


def given(name: str, root: Path) -> bytes:
    """The reported payload, with its /tmp/p as this project."""
    return (
        (INPUTS / name)
        .read_bytes()
        .replace(b"/tmp/p/t.jsonl", b"/t.jsonl")
        .replace(b"/tmp/p", os.fsencode(root))
    )


def test_case_01_no_hook_path_is_relative():
    reported = json.loads((INPUTS / "01/settings_relative.json").read_text())
    relative = reported["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    assert "${CLAUDE_PROJECT_DIR}" not in relative
    for groups in hooks_section(PYTHON, PREFIX).values():
        for entry in groups[0]["hooks"]:
            assert os.path.isabs(entry["command"])
            assert entry["args"][-2].startswith("${CLAUDE_PROJECT_DIR}/")


def test_case_01_cwd_in_a_subfolder_changes_nothing(project: HookProject):
    deep = project.root / "src" / "deep"
    deep.mkdir(parents=True)
    payload = given("01/cwd_in_subdir.json", project.root)
    assert json.loads(payload)["cwd"] == str(deep)
    answers = [
        project.start("PreToolUse", payload, cwd=folder) for folder in (project.root, deep, "/")
    ]
    assert [answer.denied for answer in answers] == [False, False, False]
    refused = [
        project.shell("rm plan.md", cwd=project.root),
        project.shell("rm ../../plan.md", cwd=deep),
    ]
    assert [answer.denied for answer in refused] == [True, True]
    assert refused[0].errors == refused[1].errors
    assert len(project.receipts()) == 5
    assert not list(deep.iterdir())


@pytest.mark.parametrize("variable", ["", "/nowhere/at/all", "unset"])
def test_case_01_the_project_variable_decides_nothing(project: HookProject, variable: str):
    if variable == "unset":
        del project.environment["CLAUDE_PROJECT_DIR"]
    else:
        project.environment["CLAUDE_PROJECT_DIR"] = variable
    assert project.shell("rm plan.md").denied
    assert not project.shell("ls").denied
    assert len(project.receipts()) == 2


def test_case_01_symlinked_root(project: HookProject):
    link = project.folder / "link"
    link.symlink_to(project.root)
    project.programs = link / ".claude" / "hooks" / "harness"
    for cwd in (link, project.root, link / "sub"):
        assert project.call("Write", {"file_path": str(link / "plan.md")}, cwd=cwd).denied
        assert not project.call("Write", {"file_path": str(link / "model.py")}, cwd=cwd).denied
    assert len(project.receipts()) == 6


def test_case_01_git_worktree(project: HookProject):
    worktree = add_worktree(project)
    assert project.call("Edit", {"file_path": "plan.md"}, cwd=worktree).denied
    assert project.shell(f"echo x > '{worktree}/.harness/config.toml'").denied
    assert not project.call("Edit", {"file_path": "train.py"}, cwd=worktree).denied
    assert not (worktree / ".harness" / "receipts").exists()
    assert len(project.receipts()) == 3


def add_worktree(project: HookProject) -> Path:
    """A linked worktree with what git has of the project: no snapshot, no receipts."""
    (project.root / ".gitignore").write_text(
        ".harness/policy.json\n.harness/receipts/\n.claude/hooks\n"
    )
    shutil.rmtree(project.root / ".git")
    git(project.root, "init", "-q")
    git(project.root, "add", "-A")
    git(project.root, "commit", "-q", "-m", "x")
    git(project.root, "worktree", "add", "-q", "-b", "other", str(project.folder / "work tree"))
    return project.folder / "work tree"


def test_case_02_a_violation_is_status_2_with_a_reason(project: HookProject):
    payload = given("02/violation.json", project.root / OLD_RUN)
    (project.root / OLD_RUN / "checkpoints").mkdir()
    answer = project.start("PreToolUse", payload)
    assert answer.denied
    assert (
        "the harness alone writes it" in answer.errors or "belongs to the harness" in answer.errors
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("guard/policy/decide.py", "raise RuntimeError('broken')\n"),
        ("guard/policy/decide.py", "import no_such_module\n"),
        ("guard/policy/decide.py", "def decide(:\n"),
        ("guard/policy/path_rules.py", None),
        ("guard/hooks/frame.py", None),
        ("guard/hooks/frame.py", "import no_such_module\n"),
        ("guard/hooks/before_tool.py", "def before_tool(call, scene):\n    raise KeyError('x')\n"),
        ("guard/hooks/before_tool.py", "def before_tool(call, scene):\n    raise SystemExit(1)\n"),
        ("guard/hooks/before_tool.py", "def before_tool(call, scene):\n    return None\n"),
        (
            "guard/hooks/before_tool.py",
            "import time\ndef before_tool(call, scene):\n    raise MemoryError\n",
        ),
    ],
)
def test_case_02_a_fault_of_the_guard_denies(project: HookProject, name: str, text: str | None):
    path = project.programs / "lib" / "harness" / name
    path.unlink() if text is None else path.write_text(text)
    answer = project.shell("ls")
    assert answer.denied
    assert "harness init" in answer.errors


@pytest.mark.parametrize(
    "event", [event for event in EVENTS if event.kind != GUARD], ids=lambda event: event.name
)
@pytest.mark.parametrize(
    "name", ["guard/hooks/frame.py", "guard/policy/receipt.py", "guard/hooks/session_receipts.py"]
)
def test_case_02_a_fault_of_any_other_hook_lets_go(project: HookProject, event, name: str):
    (project.programs / "lib" / "harness" / name).write_text("raise RuntimeError('broken')\n")
    answer = project.event(event.name)
    assert (answer.code, answer.output) == (0, "")
    assert "Traceback" not in answer.errors


def test_case_03_a_missing_library_is_no_policy(project: HookProject):
    shutil.rmtree(project.programs / "lib" / "harness")
    answer = project.shell("ls")
    assert answer.denied
    assert "hook cannot run" in answer.errors
    assert "no rule of the project" in answer.errors
    assert "harness init --remove" in answer.errors


@pytest.mark.parametrize("name", ["array.json", "half.json", "not_json.txt", "null_input.json"])
def test_case_04_what_it_says_and_what_it_does_agree(project: HookProject, name: str):
    answer = project.start("PreToolUse", given(f"04/{name}", project.root))
    assert answer.denied
    assert "cannot be" in answer.errors
    assert [
        line["permission"] for line in project.receipts("s-1" if "null" in name else "unknown")
    ] == ["deny"]


def test_case_04_unknown_keys_and_tools_take_the_default(project: HookProject):
    assert not project.call("NeverSeen", {"file_path": "plan.md"}, new_key={"deep": [1]}).denied
    assert project.call("Write", {"file_path": "plan.md", "new": 1}, new_key=[]).denied


def test_case_08_one_block_a_turn(project: HookProject):
    project.save(unjudged(project))
    assert project.event("Stop", stop_hook_active=False).due
    again = project.start("Stop", given("08/stop_again.json", project.root))
    assert (again.code, again.output, again.errors) == (0, "", "")


def test_case_08_a_missing_file_of_the_harness_never_blocks(project: HookProject):
    (project.root / ".harness" / "policy.json").unlink()
    answer = project.event("Stop", stop_hook_active=False)
    assert (answer.code, answer.output) == (0, "")


def unjudged(project: HookProject) -> dict:
    current = {"id": "exp-0002", "hypothesis": "h", "status": "running", "runs": 2, "ended": 2}
    return {**project.snapshot, "mode": "interactive", "role": None, "open_experiment": current}


def test_case_09_a_subagent_of_another_name_is_held_to_the_default(project: HookProject):
    payload = json.loads(given("09/subagent.json", project.root))
    assert payload["agent_type"] == "trainer"
    without = {
        key: value for key, value in payload.items() if key not in ("agent_id", "agent_type")
    }
    for fields in (payload, without):
        assert not project.start("PreToolUse", json.dumps(fields).encode()).denied
        fields = {
            **fields,
            "tool_name": "Write",
            "tool_input": {"file_path": "plan.md", "content": ""},
        }
        assert project.start("PreToolUse", json.dumps(fields).encode()).denied
    assert [line["role"] for line in project.receipts()] == ["main"] * 4


def test_case_09_a_role_is_held_to_its_own_files(project: HookProject):
    result = {"file_path": ".harness/experiments/exp-0002/result.md", "content": ""}
    assert not project.call("Write", result, agent_id="a1", agent_type="oracle").denied
    assert not project.call(
        "Write", result, agent_id="a1", agent_type="experiment-harness:oracle"
    ).denied
    assert project.call("Write", result, agent_id="a1", agent_type="trainer").denied
    assert project.call("Write", result).denied


def test_case_09_every_matcher_takes_every_tool():
    groups = hooks_section(PYTHON, PREFIX)
    assert groups["PreToolUse"][0]["matcher"] == "*"
    assert groups["PostToolUse"][0]["matcher"] == "*"


@pytest.mark.parametrize("tool", ["Task", "Agent"])
def test_case_09_starting_a_subagent_is_left_to_the_user(project: HookProject, tool: str):
    assert not project.call(tool, {"prompt": "write plan.md", "subagent_type": "oracle"}).denied


def test_case_09_an_unhooked_call_is_found_afterwards(project: HookProject):
    project.call("Write", {"file_path": "model.py"}, identity="toolu_1")
    calls = [
        {"tool_name": "Write", "tool_input": {"file_path": "model.py"}, "tool_use_id": "toolu_1"},
        {"tool_name": "Edit", "tool_input": {"file_path": "plan.md"}, "tool_use_id": "toolu_2"},
    ]
    assert project.event("PostToolBatch", tool_calls=calls).code == 0
    (line,) = [line for line in project.receipts() if line["rule"] == "unhooked"]
    assert (line["event"], line["tool"], line["tool_use_id"], line["paths"]) == (
        "PostToolBatch",
        "Edit",
        "toolu_2",
        ["plan.md"],
    )
