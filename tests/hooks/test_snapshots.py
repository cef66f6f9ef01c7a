"""Without a snapshot that can be trusted, a guard denies, says which is wrong with it, and how it
is fixed."""

import json
import shutil

import pytest
from hook_project import HookProject


def damaged(project: HookProject, **changes) -> dict:
    return {**project.snapshot, "mode": "interactive", "role": None, **changes}


SNAPSHOTS = {
    "missing": (None, "missing"),
    "empty": ("", "cannot be read"),
    "half": ('{"schema": 1, "root": "/', "cannot be read"),
    "not UTF-8": ("\udcff", "cannot be read"),
    "a list": ("[]", "expected one JSON object"),
    "nested too deep": ('{"a":' * 100_000, "cannot be read"),
    "older": ({"schema": 0}, "older"),
    "newer": ({"schema": 2}, "newer"),
    "no schema": ({"schema": None}, "expected 1"),
    "moved": ({"root": "/elsewhere"}, "was written for /elsewhere"),
    "relative root": ({"root": "here"}, "not an absolute path"),
    "no roles": ({"roles": {}}, "no role main"),
    "damaged role": ({"roles": {"main": {}}}, "damaged"),
    "damaged experiment": ({"open_experiment": {"id": 3}}, "damaged"),
    "protected as text": ({"protected": ".claude"}, "damaged"),
}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_is_denied_with_what_is_wrong_and_the_hint(project: HookProject, name: str):
    value, expected = SNAPSHOTS[name]
    path = project.root / ".harness" / "policy.json"
    if value is None:
        path.unlink()
    elif isinstance(value, str):
        path.write_bytes(value.encode("utf-8", "surrogateescape"))
    else:
        project.save(damaged(project, **value))
    for answer in (project.call("Read", {"file_path": "train.py"}), project.shell("ls")):
        assert answer.denied
        assert expected in answer.errors
        assert "harness render" in answer.errors
        assert "A person" in answer.errors
    assert {line["permission"] for line in project.receipts()} == {"deny"}
    said = project.event("SessionStart", source="startup")
    assert expected in said.context or name == "no roles"
    denied = "every tool call is denied, for .harness/policy.json cannot be used"
    if name != "no roles":
        assert said.person.startswith(f"harness: guards do not work: {denied}")
        assert said.person.endswith("; run: harness render")
    for event in (
        "PostToolUse",
        "Stop",
        "SubagentStop",
        "SessionEnd",
    ):
        assert project.event(event, agent_type="oracle").code == 0


def test_a_folder_in_its_place(project: HookProject):
    path = project.root / ".harness" / "policy.json"
    path.unlink()
    path.mkdir()
    assert project.shell("ls").denied


def test_a_copy_of_the_project_is_another_project(project: HookProject):
    """Copied with its snapshot, which speaks of files at the old place."""
    shutil.copytree(project.root, project.folder / "copy")
    project.programs = project.folder / "copy" / ".claude" / "hooks" / "harness"
    answer = project.call("Write", {"file_path": "plan.md"}, cwd=project.folder / "copy")
    assert answer.denied
    assert "was written for" in answer.errors


def test_further_keys_are_left_alone(project: HookProject):
    more = {"command": 3, "briefing": [], "receipts": None, "policy": {}, "new": "x", "hooks": 1}
    project.save(damaged(project, **more))
    assert not project.shell("ls").denied
    assert project.shell("rm plan.md").denied
    assert len(project.receipts()) == 2
    assert project.event("SessionStart", source="startup").code == 0
    assert json.loads((project.root / ".harness/policy.json").read_text())["command"] == 3


def test_a_clone_is_told_the_one_command_that_makes_it_whole(project: HookProject):
    (project.root / ".harness" / "policy.json").unlink()
    project.write(".harness/memory/facts/a.jsonl", "{}\n")
    for answer in (project.shell("ls"), project.event("SessionStart", source="startup")):
        assert "harness ledger import --project" in answer.errors + answer.output
        assert "harness render" not in answer.errors + answer.output
