"""Payloads, snapshots, roles and tools: what cannot be judged is denied, with the next step."""

import copy

import pytest
from policy_project import OLD, OPEN, OWN

from harness.guard.policy.decide import decide, role_of
from harness.guard.policy.snapshot import HINT, problem


@pytest.mark.parametrize("given", [None, "ls", 3, [], True])
@pytest.mark.parametrize("tool", ["Write", "Bash", "Read", "mcp__harness__open_experiment"])
def test_tool_input_that_is_no_object_is_denied(project, tool, given):
    assert project.ask(tool, given)["permission"] == "deny"


@pytest.mark.parametrize("tool", ["Write", "Edit", "Read"])
@pytest.mark.parametrize("path", [None, 3, "", ["a"], {"a": 1}, "a\0b", "\ud800", b"a.py"])
def test_path_that_is_no_text_is_denied(project, tool, path):
    said = project.ask(tool, {"file_path": path})
    assert said["permission"] == "deny"
    assert said["hint"]


@pytest.mark.parametrize("command", [None, 3, ["ls"], {"a": 1}])
def test_command_that_is_no_text_is_denied(project, command):
    assert project.bash(command)["permission"] == "deny"


@pytest.mark.parametrize(
    "call", [None, [], "x", {}, {"tool_name": None}, {"tool_name": 3}, {"tool_name": ""}]
)
def test_payload_without_a_tool_is_denied(project, call):
    said = decide(call, project.snapshot)
    assert (said["permission"], said["rule"]) == ("deny", "payload_unreadable")


def test_unknown_keys_of_payload_and_snapshot_are_ignored(project):
    call = {
        "tool_name": "Read",
        "tool_input": {"file_path": "model.py", "new": [1]},
        "cwd": str(project.root),
        "x": {},
    }
    assert decide(call, {**project.snapshot, "later": 1})["permission"] == "allow"


@pytest.mark.parametrize("cwd", [None, 3, "", "relative"])
def test_relative_path_needs_a_working_directory(project, cwd):
    call = {"tool_name": "Write", "tool_input": {"file_path": "model.py"}, "cwd": cwd}
    assert decide(call, project.snapshot)["permission"] == "deny"
    call["tool_input"] = {"file_path": f"{project.root}/model.py"}
    assert decide(call, project.snapshot)["permission"] == "allow"


@pytest.mark.parametrize(
    ("snapshot", "rule"),
    [
        (None, "snapshot_missing"),
        ([], "snapshot_damaged"),
        ("{}", "snapshot_damaged"),
        ({}, "snapshot_damaged"),
        ({"schema": True}, "snapshot_damaged"),
        ({"schema": 0}, "snapshot_older"),
        ({"schema": 99}, "snapshot_newer"),
    ],
)
def test_snapshot_that_is_none_is_denied_with_the_hint(snapshot, rule):
    said = decide({"tool_name": "Read", "tool_input": {"file_path": "/a"}, "cwd": "/"}, snapshot)
    assert (said["permission"], said["rule"], said["hint"]) == ("deny", rule, HINT)


def test_every_field_of_the_snapshot_is_required(project):
    for key in project.snapshot.keys() - {"asked_verbs"}:  # of which none may be asked for
        broken = {name: value for name, value in project.snapshot.items() if name != key}
        assert problem(broken) is not None, key
        if key != "schema":
            assert key in problem(broken)[1]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("root",), "relative"),
        (("state",), ""),
        (("protected",), [1]),
        (("human_verbs",), [[]]),
        (("human_verbs",), ["init"]),
        (("artifacts",), [{"name": "x"}]),
        (("roles", "oracle"), {"tools": [], "writes": "x", "code": False}),
        (("roles", "oracle"), {"tools": [1], "writes": [], "code": False}),
        (("roles", "oracle"), {"tools": [], "writes": []}),
        (("roles", "oracle"), None),
        (("open_experiment",), {"id": "exp-0001"}),
        (("open_experiment",), []),
    ],
)
def test_damaged_snapshot_is_denied(project, path, value):
    broken = copy.deepcopy(project.snapshot)
    target = broken
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    said = decide(
        {"tool_name": "Read", "tool_input": {"file_path": "/etc/hosts"}, "cwd": "/"}, broken
    )
    assert (said["permission"], said["rule"]) == ("deny", "snapshot_damaged")


def test_role_of_a_call(project):
    assert role_of({"agent_type": "oracle"}, project.snapshot) == "oracle"
    assert role_of({"agent_type": "harness:oracle"}, project.snapshot) == "oracle"
    assert role_of({"agent_type": "general-purpose"}, project.snapshot) == "model-builder"
    assert role_of({"agent_type": 3}, project.snapshot) == "model-builder"
    assert role_of({}, {**project.snapshot, "role": None}) == "main"


def test_role_that_the_snapshot_lacks_is_denied(project):
    said = project.ask("Read", {"file_path": "model.py"}, role="stranger")
    assert (said["permission"], said["rule"]) == ("deny", "role_unknown")


def test_tool_that_the_role_lacks_is_denied_and_the_default_is_stated(project):
    said = project.ask("WebFetch", {"url": "https://example.org"})
    assert (said["permission"], said["rule"]) == ("deny", "tool_not_offered")
    assert "by default" in said["reason"]
    assert "Bash" in said["hint"]
    assert project.ask("Bash", {"command": "ls"}, role="oracle")["permission"] == "deny"


def test_main_session_has_any_tool_without_an_opinion(project):
    assert project.ask("WebFetch", {"url": "x"}, role=None)["permission"] is None
    assert project.ask("Agent", {"prompt": "x"}, role=None)["permission"] is None
    assert project.ask("Grep", {"pattern": "x"}, role=None)["permission"] == "allow"
    assert (
        project.ask("Grep", {"pattern": "x", "path": str(project.state)}, role=None)["permission"]
        == "deny"
    )


def test_artifacts_of_roles(project):
    assert project.ask("Write", {"file_path": OWN})["permission"] == "allow"
    other_role = project.ask("Write", {"file_path": f"{OPEN}/result.md"})
    assert (other_role["rule"], "oracle" in other_role["reason"]) == ("not_your_artifact", True)
    other = project.ask("Edit", {"file_path": f"{OLD}/hypothesis.md"})
    assert (other["rule"], "exp-0002" in other["reason"]) == ("other_experiment", True)
    none_open = project.ask(
        "Write",
        {"file_path": f"{OLD}/hypothesis.md"},
        open_experiment=None,
        roles=_without_files(project),
    )
    assert "open_experiment" in none_open["hint"]
    assert project.ask("Write", {"file_path": f"{OPEN}/score.json"})["rule"] == "protected_path"
    assert project.ask("Write", {"file_path": f"{OPEN}/notes.md"})["rule"] == "protected_path"


def _without_files(project):
    roles = copy.deepcopy(project.snapshot["roles"])
    roles["model-builder"]["writes"] = []
    return roles


def test_role_without_code_writes_its_artifact_only(project):
    assert (
        project.ask("Write", {"file_path": f"{OPEN}/result.md"}, role="oracle")["permission"]
        == "allow"
    )
    said = project.ask("Write", {"file_path": "model.py"}, role="oracle")
    assert (said["permission"], said["rule"]) == ("deny", "read_only_role")
    assert f"{OPEN}/result.md" in said["hint"]


def test_denials_say_what_may_be_written(project):
    said = project.ask("Write", {"file_path": "plan.md"})
    assert "a person alone writes it" in said["reason"]
    assert OWN in said["hint"]


def test_second_experiment_is_denied_with_the_next_command(project):
    tool = "mcp__harness__open_experiment"
    said = project.ask(tool, {"hypothesis": "deeper is better"})
    assert (said["permission"], said["rule"]) == ("deny", "experiment_open")
    assert "exp-0002" in said["hint"]
    assert project.ask(tool, {"hypothesis": " wider  is better "})["permission"] == "allow"
    assert project.ask(tool, {"hypothesis": "any"}, open_experiment=None)["permission"] == "allow"
    gate = project.ask(tool, {"hypothesis": "any"}, open_gate="validation")
    assert (gate["rule"], "harness gate check exp-0002" in gate["hint"]) == ("gate_open", True)


@pytest.mark.parametrize("given", [{}, {"hypothesis": None}, {"hypothesis": ["wider is better"]}])
def test_open_experiment_with_a_strange_hypothesis_is_denied(project, given):
    assert project.ask("mcp__harness__open_experiment", given)["permission"] == "deny"


def test_mcp_tools_of_others_are_judged_by_the_paths_that_they_name(project):
    tool = "mcp__files__write"
    assert project.ask(tool, {"path": "plan.md"}, role=None)["permission"] == "deny"
    assert (
        project.ask(tool, {"uri": f"file://{project.root}/plan.md"}, role=None)["permission"]
        == "deny"
    )
    assert (
        project.ask(tool, {"edits": [{"to": {"p": ".harness/x"}}]}, role=None)["permission"]
        == "deny"
    )
    assert (
        project.ask(tool, {"path": f"{project.state}/ledger.db"}, role=None)["permission"]
        == "deny"
    )
    assert (
        project.ask(tool, {"path": "notes.txt", "text": "see plan.md\nand .harness"}, role=None)[
            "permission"
        ]
        is None
    )


@pytest.mark.parametrize(
    "given",
    [
        {"path": "plan.md\n"},
        {"paths": "notes.txt\n  .claude/settings.json\n"},
        {"path": "sub/../" * 1000 + "plan.md"},
        {"files": {".claude/settings.json": "{}"}},
        {"uri": "FILE://localhost{root}/plan.md"},
        {"uri": "file:{root}/plan.md"},
        {"uri": "file://{root}/pl%61n.md"},
        {"path": "%2eclaude/settings.json"},
        {"args": {"command": "harness gate approve exp-0002"}},
        {"steps": [{"run": "rm plan.md"}]},
        {"shellCommand": "rm plan.md"},
        {"command_line": ["harness", "gate", "approve"]},
        {"program": "harness", "args": ["gate", "approve"]},
        {"cmd": "bash", "arguments": "-c 'rm -rf .claude'"},
        {"code": "import os; os.unlink('plan.md')"},
        {"code": "from harness.ledger.ledger import Ledger"},
    ],
)
@pytest.mark.parametrize(
    "tool",
    ["mcp__files__write", "mcp__plugin_other_harness__write", "mcp__plugin_x_my_harness__w"],
)
def test_mcp_arguments_of_any_form_are_judged(project, tool: str, given: dict):
    root = str(project.root)
    given = {
        key: value.replace("{root}", root) if isinstance(value, str) else value
        for key, value in given.items()
    }
    denied = project.ask(tool, given, role=None)
    assert denied["permission"] == "deny"
    assert denied["rule"] != "path_unreadable"


def test_mcp_paths_are_judged_from_the_root_too(project, tmp_path):
    assert (
        project.ask("mcp__files__write", {"path": "plan.md"}, role=None, cwd=tmp_path)[
            "permission"
        ]
        == "deny"
    )
    assert (
        project.ask("mcp__files__write", {"path": "notes.txt"}, role=None, cwd=tmp_path)[
            "permission"
        ]
        is None
    )


@pytest.mark.parametrize(
    "given",
    [
        {
            "path": "train.py",
            "content": "# as plan.md says\nx = 1 % 2\n\n" + "y = '" + "x/" * 5000 + "'\n",
        },
        {"files": {"notes.txt": "data/train.npz is read"}, "data": 1, "plan": "x"},
        {"code": "import numpy; numpy.load('data/train.npz')"},
        {"run_id": "run-01", "description": "it's about plan.md"},
        {"command": "ls", "args": ["-l", "sub"]},
        {"url": "https://example.org/%7Ea/100%/plan.md"},
    ],
)
def test_ordinary_mcp_arguments_are_let_through(project, given: dict):
    assert project.ask("mcp__files__write", given, role=None)["permission"] is None


def test_more_texts_than_are_looked_at_are_denied(project):
    given = {"text": "\n".join(f"line {number}" for number in range(6000))}
    assert project.ask("mcp__files__write", given, role=None)["rule"] == "arguments_unread"


def test_deeply_nested_input_is_judged_without_a_crash(project):
    value: object = "plan.md"
    for _ in range(5000):
        value = [value]
    assert project.ask("mcp__files__write", {"path": value}, role=None)["permission"] == "deny"
