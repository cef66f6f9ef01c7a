"""Sessions of the real CLI that begin elsewhere than at the top of one project: each is guarded, or
says why it is not."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from tests.cli.journey import Journey
from tests.interactive.gateway import bash, call
from tests.interactive.place import ROOT
from tests.interactive.sdk import FROM_PROJECT, Played, play
from tests.interactive.sklearn_repository import git

HARNESS = shlex.quote(str(Path(sys.executable).with_name("harness")))
BELOW = {**FROM_PROJECT, "settings": json.dumps({"enableAllProjectMcpServers": True})}
UNGUARDED = "no hook of this project guards this session"
PLUGIN: dict[str, Any] = {"plugins": [{"type": "local", "path": str(ROOT)}]}


def told(played: Played) -> str:
    """All that the model was asked, as it was sent."""
    return "\n".join(json.dumps(request.body, ensure_ascii=False) for request in played.requests)


def receipts(root: Path) -> list[dict[str, Any]]:
    files = (root / ".harness/receipts").glob("*.jsonl")
    return [json.loads(line) for path in files for line in path.read_text("utf-8").splitlines()]


def test_below_the_project_the_model_is_told_that_nothing_guards(fresh: Journey) -> None:
    below = fresh.root / "sub"
    below.mkdir()
    steps = [[bash("status", f"sleep 1; {HARNESS} status")], "Told."]
    played = play(below, fresh.home, {"PLEASE LOOK": steps}, options=BELOW)
    assert UNGUARDED in played.text("status")
    assert str(fresh.root) in played.text("status")
    assert "No hook of the harness guards this session" in told(played)
    tools = [name for name in played.document["init"]["tools"] if name.startswith("mcp__")]
    assert not any(name.startswith("mcp__harness") for name in tools)


def test_above_nested_projects_a_command_says_so(fresh: Journey) -> None:
    policy, inside = fresh.root / ".harness/policy.json", shlex.quote(str(fresh.root))
    before = policy.read_bytes()
    steps = [
        [bash("over", f"echo x > {shlex.quote(str(policy))}")],
        [bash("status", f"cd {inside} && {HARNESS} status")],
        [bash("note", f"cd {inside} && {HARNESS} handoff --note Mine")],
        "Told.",
    ]
    played = play(fresh.root.parent, fresh.home, {"PLEASE LOOK": steps})
    assert not played.failed("over")  # nothing guards it there ...
    assert UNGUARDED in played.text("status")
    assert UNGUARDED in played.text("note")
    assert policy.read_bytes() == before  # ... and the next command that records makes it whole


def test_plugin_and_project_together_answer_once(fresh: Journey) -> None:
    tries = [
        call("write", "Write", file_path=str(fresh.root / ".harness/policy.json"), content="x"),
        bash("fine", "echo fine"),
    ]
    played = play(
        fresh.root,
        fresh.home,
        {"PLEASE TRY": [tries, "Done."]},
        options={**FROM_PROJECT, **PLUGIN},
    )
    assert played.held("write")
    assert not played.failed("fine")
    briefing = (fresh.root / ".harness/memory/BRIEFING.md").read_text("utf-8").strip()
    assert told(played).count(json.dumps(briefing, ensure_ascii=False)[1:60]) == len(
        played.requests
    )
    lines = receipts(fresh.root)
    assert [line["tool_use_id"] for line in lines if line["event"] == "PreToolUse"] == [
        "write",
        "fine",
    ]
    assert [line["event"] for line in lines].count("SessionStart") == 1
    assert not any("hooks" in line for line in lines)


def test_plugin_in_an_unrelated_repository_is_connected_and_says_nothing(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git(elsewhere, "init", "-q")
    options = {**PLUGIN, "setting_sources": [], "allowed_tools": ["Bash"]}
    steps = [[bash("wait", "sleep 1")], "Done."]
    played = play(elsewhere, tmp_path / "home", {"PLEASE WAIT": steps}, options=options)
    servers = {item["name"]: item["status"] for item in played.document["init"]["mcp_servers"]}
    assert servers["plugin:harness:harness"] in ("connected", "pending")
    assert "No hook of the harness" not in told(played)
