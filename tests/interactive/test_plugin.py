"""This repository as a plugin: it enforces in a project that has nothing but .harness/, and is
silent elsewhere."""

import shlex
from pathlib import Path
from typing import Any

from harness.contract.roles import ROLES
from harness.model_gateway.wire import newest_text
from tests.cli.journey import Journey
from tests.interactive.gateway import bash, call, delegate, shown
from tests.interactive.place import ROOT
from tests.interactive.sdk import FILES_SERVER, play
from tests.interactive.sklearn_repository import git

SERVER = "mcp__plugin_harness_harness"
AS_PLUGIN: dict[str, Any] = {
    "setting_sources": [],
    "plugins": [{"type": "local", "path": str(ROOT)}],
    "permission_mode": "acceptEdits",
    "allowed_tools": ["Bash", "Read", "Write", "Edit", "Agent", "mcp__files", SERVER],
    "mcp_servers": FILES_SERVER,
}


def outside(root: Path) -> dict[str, bytes]:
    """Every file of the repository but those of git and the harness's own folder."""
    found = [path for path in root.rglob("*") if path.is_file()]
    parts = {path: path.relative_to(root).parts for path in found}
    return {
        "/".join(parts[path]): path.read_bytes()
        for path in found
        if parts[path][0] not in (".git", ".harness")
    }


def test_it_enforces_with_nothing_in_the_repository(bare: Journey, copied: Path) -> None:
    policy = bare.root / ".harness/policy.json"
    tries = [
        call("write", "Write", file_path=str(policy), content="x"),
        call("mcp", "mcp__files__write_file", path=str(policy), content="x"),
        bash("sh", f"echo x > {shlex.quote(str(policy))}"),
        bash("cd", "cd .harness && rm -f policy.json"),
        call(
            "settings", "Write", file_path=str(bare.root / ".claude/settings.json"), content="{}"
        ),
        bash("plugin", f"echo x >> {copied}/hooks/run.py"),
        bash("train", "python3 train.py"),
    ]
    work = [
        call("file", "Write", file_path=str(bare.root / "new.py"), content="x = 1\n"),
        bash("echo", "echo fine > fine.txt"),
    ]
    repository = outside(bare.root)
    assert not any(name.startswith(".claude") or name == ".mcp.json" for name in repository)
    options = {**AS_PLUGIN, "plugins": [{"type": "local", "path": str(copied)}]}
    briefing = (bare.root / ".harness/memory/BRIEFING.md").read_text("utf-8").strip()
    before, program = policy.read_bytes(), (copied / "hooks/run.py").read_bytes()
    played = play(bare.root, bare.home, {"PLEASE TRY": [tries, work, "Done."]}, options=options)
    assert played.not_held(tries) == {}
    assert "harness train" in played.text("train")
    assert (policy.read_bytes(), (copied / "hooks/run.py").read_bytes()) == (
        before,
        program,
    )
    assert {"file", "echo"} <= played.passed_labels
    assert outside(bare.root) == {**repository, "new.py": b"x = 1\n", "fine.txt": b"fine\n"}
    assert briefing in shown(played.requests[0])


def test_main_claude_delegates_to_its_agents(bare: Journey) -> None:
    """The builder opens an experiment by a tool of the plugin's server, writes its own file and no
    other role's."""
    folder = bare.root / ".harness/experiments/exp-0001"
    steps = [
        [
            call(
                "open",
                f"{SERVER}__open_experiment",
                hypothesis="centroids",
                rationale="They are round.",
            )
        ],
        [
            call(
                "config",
                "Write",
                file_path=str(folder / "config.yaml"),
                content="model: centroids\n",
            ),
            call("result", "Write", file_path=str(folder / "result.md"), content="9\n"),
            call("status", f"{SERVER}__run_status"),
        ],
        "Built.",
    ]
    played = play(
        bare.root,
        bare.home,
        {
            "PLEASE DELEGATE": [
                [delegate("agent", "PLEASE BUILD", "harness:model-builder")],
                "Done.",
            ]
        },
        subagents={"PLEASE BUILD": steps},
        options=AS_PLUGIN,
    )
    assert {f"harness:{role.name}" for role in ROLES} <= set(played.document["init"]["agents"])
    assert {"open", "config", "status", "agent"} <= played.passed_labels
    assert played.held("result")
    assert (folder / "config.yaml").read_text("utf-8") == "model: centroids\n"
    (first, *_) = [item for item in played.gateway.requests if item.subagent]
    assert "Off-limits" in shown(first)


def test_its_slash_commands_answer_from_the_harness(bare: Journey) -> None:
    """With no rule of the person's own that allows anything: a command brings what it needs."""
    options = {**AS_PLUGIN, "permission_mode": "default", "allowed_tools": []}
    typed = {
        "/harness:status": ["Told."],
        "/harness:decisions": ["Told."],
        "/harness:gate exp-0007": ["Told."],
    }
    words = {name.split()[0]: turns for name, turns in typed.items()}
    played = play(bare.root, bare.home, words, send=list(typed), options=options)
    status, decisions, gate = (newest_text(request.body) for request in played.requests)
    assert "toy, version 1" in status
    assert "no decisions yet" in decisions
    assert "exp-0007" in gate
    assert "none exists yet" in gate


def test_it_is_silent_where_there_is_no_project(tmp_path: Path) -> None:
    elsewhere, home = tmp_path / "elsewhere", tmp_path / "home"
    elsewhere.mkdir()
    git(elsewhere, "init", "-q")
    work = [
        bash("echo", "echo fine > fine.txt"),
        call("file", "Write", file_path=str(elsewhere / "train.py"), content="print(6 * 7)\n"),
        bash("train", "python3 train.py"),
    ]
    played = play(elsewhere, home, {"PLEASE WORK": [work, "Done."]}, options=AS_PLUGIN)
    assert {"echo", "file", "train"} <= played.passed_labels
    assert "Stop hook feedback" not in shown(played.requests[-1])
    assert "SessionStart" not in shown(played.requests[-1])
    assert sorted(path.name for path in elsewhere.iterdir()) == [".git", "fine.txt", "train.py"]
