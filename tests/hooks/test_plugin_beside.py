"""The plugin where it has nothing to do: no project, or one whose own hooks and tools answer."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hook_project import PREFIX, PYTHON, REPOSITORY, HookProject, copy_library

from harness.contract.installation import MCP_SERVERS, VENDORED
from harness.contract.roles import MCP_SERVER
from harness.guard.hooks import plugin_beside
from harness.guard.hooks.frame import BESIDE, START
from harness.guard.hooks.table import EVENTS, GUARD, hooks_section
from harness.rendering.claude_files import project_server

ASKED = [
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}},
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": "a", "method": "ping"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "run_status"}},
]


@pytest.fixture
def both(project: HookProject) -> tuple[HookProject, HookProject]:
    """(the project with its own hooks, the same project as the plugin's programs see it)."""
    manifest = {"files": {}, "settings": hooks_section(PYTHON, PREFIX)}
    project.write(f"{VENDORED}/MANIFEST.json", json.dumps(manifest))
    place = project.folder / "plug in"
    shutil.copytree(
        REPOSITORY / "hooks", place / "hooks", ignore=shutil.ignore_patterns("__pycache__")
    )
    copy_library(place / "harness")
    plugin = HookProject.__new__(HookProject)
    plugin.__dict__ = {
        **project.__dict__,
        "programs": place / "hooks",
        "environment": {**project.environment, "CLAUDE_PLUGIN_ROOT": str(place)},
    }
    return project, plugin


def asked(*messages: object) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def test_the_names_are_the_contracts() -> None:
    assert (plugin_beside.VENDORED, plugin_beside.SERVERS) == (VENDORED, MCP_SERVERS)
    assert plugin_beside.SERVER == MCP_SERVER


def test_without_a_project_it_offers_no_tools_and_is_no_error(
    both: tuple[HookProject, HookProject], tmp_path: Path
) -> None:
    _, plugin = both
    empty = tmp_path / "empty"
    empty.mkdir()
    plugin.environment["CLAUDE_PROJECT_DIR"] = str(empty)
    lines = asked(*ASKED) + b"half a line, no JSON\n"
    answer = plugin.program(["mcp.py"], lines, cwd=empty)
    assert (answer.code, answer.errors) == (0, "")
    begun, listed, alive, called = map(json.loads, answer.output.splitlines())
    assert begun["result"]["protocolVersion"] == "2025-11-25"
    assert "instructions" not in begun["result"]
    assert (listed["id"], listed["result"]) == (1, {"tools": []})
    assert (alive["id"], alive["result"]) == ("a", {})
    assert called["error"]["code"] == -32601
    assert list(empty.iterdir()) == []


def test_where_the_projects_own_hooks_run_it_steps_back(
    both: tuple[HookProject, HookProject],
) -> None:
    project, plugin = both
    for which in (plugin, project):
        which.event("SessionStart", source="startup")
    assert len(project.receipts()) == 1
    assert plugin.call("Write", {"file_path": "plan.md"}).denied  # without a second receipt
    assert project.call("Write", {"file_path": "plan.md"}).denied
    for event in (event.name for event in EVENTS if event.kind != GUARD):
        answer = plugin.event(event, source="startup", tool_calls=[], tool_name="Read")
        said = json.dumps({"systemMessage": BESIDE}, separators=(",", ":")) + "\n"
        shown = said if event == START else ""
        assert (answer.code, answer.output, answer.errors) == (0, shown, ""), event
    assert [line.get("hooks") for line in project.receipts()] == [None, None]


def test_a_session_without_the_projects_settings_is_guarded_by_the_plugin(
    both: tuple[HookProject, HookProject],
) -> None:
    _, plugin = both
    plugin.event("SessionStart", source="startup")
    for number in range(2):  # its own receipts are no sign of the project's hooks
        assert plugin.call("Write", {"file_path": "plan.md"}, identity=f"toolu_{number}").denied
    assert [line["hooks"] for line in plugin.receipts()] == ["plugin", "plugin"]


def test_a_forged_receipt_switches_no_guard_off(both: tuple[HookProject, HookProject]) -> None:
    _, plugin = both
    plugin.write(".harness/receipts/s-1.jsonl", "{}\n")
    assert plugin.call("Write", {"file_path": "plan.md"}).denied


def test_a_session_below_the_project_is_guarded_and_recorded_by_the_plugin(
    both: tuple[HookProject, HookProject],
) -> None:
    _, plugin = both
    below = plugin.root / "sub"
    below.mkdir(exist_ok=True)
    plugin.environment["CLAUDE_PROJECT_DIR"] = str(below)
    plugin.event("SessionStart", source="startup", cwd=below)
    assert plugin.call("Write", {"file_path": "../plan.md"}, cwd=below).denied
    assert [line["event"] for line in plugin.receipts()] == ["SessionStart", "PreToolUse"]


@pytest.mark.parametrize("off", ["settings without a guard", "no manifest"])
def test_a_project_whose_hooks_are_not_whole_is_guarded_by_the_plugin(
    both: tuple[HookProject, HookProject], off: str
) -> None:
    project, plugin = both
    project.event("SessionStart", source="startup")
    if off == "no manifest":
        (project.root / VENDORED / "MANIFEST.json").unlink()
    else:
        section = hooks_section(PYTHON, PREFIX)
        del section["PreToolUse"]
        project.write(".claude/settings.json", json.dumps({"hooks": section}))
    assert plugin.call("Write", {"file_path": "plan.md"}).denied


def test_a_session_below_the_project_has_no_tools_and_the_model_is_told_why(
    project: HookProject,
) -> None:
    command = project.folder / "harness"
    command.write_text("#!/bin/sh\necho tools\n")
    command.chmod(0o755)
    project.save(
        {**project.snapshot, "mode": "interactive", "role": None, "command": str(command)}
    )
    words = project_server(PYTHON)["args"]
    below = project.root / "sub" / "deep"
    below.mkdir(parents=True)
    for folder, variable in ((below, "."), (project.root, str(below))):
        lines = asked(*ASKED)
        done = started([*words[:-1], variable], lines, folder, project)
        begun, listed, *_ = map(json.loads, done.splitlines())
        assert str(project.root) in begun["result"]["instructions"]
        assert listed["result"] == {"tools": []}
    for folder, variable in ((project.root, "."), (below, str(project.root))):
        assert started([*words[:-1], variable], b"", folder, project) == "tools\n"


def started(words: list[str], lines: bytes, folder: Path, project: HookProject) -> str:
    """What the server of .mcp.json writes, started in `folder` as Claude Code does."""
    del project.environment["CLAUDE_PROJECT_DIR"]
    done = subprocess.run(
        [PYTHON, *words],
        input=lines,
        cwd=folder,
        env=project.environment,
        capture_output=True,
        timeout=60,
    )
    project.environment["CLAUDE_PROJECT_DIR"] = str(project.root)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_the_tools_are_offered_once(both: tuple[HookProject, HookProject]) -> None:
    project, plugin = both
    command = project.folder / "harness"
    command.write_text("#!/bin/sh\necho tools\n")
    command.chmod(0o755)
    project.save(
        {**project.snapshot, "mode": "interactive", "role": None, "command": str(command)}
    )
    assert plugin.program(["mcp.py"], b"").output == "tools\n"
    project.write(MCP_SERVERS, json.dumps({"mcpServers": {MCP_SERVER: {"type": "stdio"}}}))
    assert plugin.program(["mcp.py"], b"").output == ""
    assert project.program(["mcp.py"], b"").output == "tools\n"
