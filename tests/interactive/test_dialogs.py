"""What Claude Code's own dialogs write touches no verdict, and what is allowed at `init` asks
nothing. Every dialog is answered by keys."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.model_gateway.wire import tool_results
from tests.cli.journey import Journey
from tests.interactive.gateway import bash, call, open_gateway
from tests.interactive.lab import make_fresh, must
from tests.interactive.tmux import interactive

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: apt install tmux"
)
EXPERIMENT = ".harness/experiments/exp-0001"
ASKED = "Do you want to proceed?"
READS = {
    "READ-ALL": [
        [bash("status", "harness status"), bash("list", "harness experiment list")],
        [call("tool", "mcp__harness__evaluation_report")],
        "READ-IT-ALL",
    ]
}


def passed(project: Journey) -> None:
    """One open experiment with a PASS on validation."""
    must(project.harness("experiment", "new", "--hypothesis", "centroids"))
    (project.root / EXPERIMENT / "config.yaml").write_text("model: centroids\n", "utf-8")
    (project.root / EXPERIMENT / "next.md").write_text("Try more.\n", "utf-8")
    must(project.harness("train", "exp-0001"))
    must(project.harness("evaluate", "exp-0001"))
    must(project.harness("experiment", "result", "exp-0001", "--summary", "As measured."))
    must(project.harness("gate", "check", "exp-0001"))


def settings(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def test_each_dialog_of_the_cli_leaves_a_pass_as_it_is(fresh: Journey) -> None:
    passed(fresh)
    claude, config = fresh.root / ".claude", fresh.home / "config"
    prompts = {"PLEASE LOOK": [[bash("look", "harness status")], "LOOKED-AT-IT"]}
    with (
        open_gateway(prompts) as gateway,
        interactive(fresh.root, fresh.home, gateway, "--permission-mode", "default") as terminal,
    ):
        local = settings(claude, "settings.local.json")
        assert local == {"enabledMcpjsonServers": ["harness"]}
        terminal.say("PLEASE LOOK", until=ASKED)
        terminal.choose("Yes, and don’t ask again", gone=ASKED)
        terminal.wait_for("LOOKED-AT-IT")
        local = settings(claude, "settings.local.json")
        assert local["permissions"]["allow"] == ["Bash(harness status *)"]
        for place, saved in (("Project settings (local)", "ls"), ("Project settings  ", "wc")):
            terminal.say("/permissions", until="Add a new rule")
            terminal.keys("Down")
            terminal.wait_for("Enter to select")
            terminal.keys("Enter")
            terminal.wait_for("Add allow permission rule")
            terminal.fill(f"Bash({saved}:*)", until="Where should this rule be saved?")
            terminal.choose(place, gone="Where should this rule be saved?")
            terminal.keys("Escape")
            terminal.wait_for(gone="Add a new rule")
        terminal.say("/model", until="Select model")
        terminal.choose("Sonnet", gone="Select model")
        terminal.wait_for("Switch model?")
        terminal.choose("Yes, switch", gone="Switch model?")
        terminal.say("/theme", until="Choose the text style")
        terminal.choose("Light mode", gone="Choose the text style")
    assert gateway.failure is None
    assert "Bash(ls:*)" in settings(claude, "settings.local.json")["permissions"]["allow"]
    assert "Bash(wc:*)" in settings(claude, "settings.json")["permissions"]["allow"]
    assert settings(config, "settings.json").keys() >= {"model", "theme"}
    answer = fresh.harness("gate", "check", "exp-0001", "--json")
    assert (answer.exit_code, answer.document["verdict"]) == (0, "PASS"), answer.stdout
    audit = fresh.harness("audit", CLAUDE_CONFIG_DIR=str(config))
    assert (audit.exit_code, "nothing found" in audit.stdout) == (0, True), audit.stdout


@pytest.mark.parametrize("mode", ["default", "plan"])
def test_what_is_allowed_at_init_asks_nothing(tmp_path: Path, mode: str) -> None:
    project = make_fresh(tmp_path, "--allow")
    must(project.harness("experiment", "new", "--hypothesis", "centroids"))
    prompts = {**READS, "The harness says": ["STATUS-ANSWER"]}
    with (
        open_gateway(prompts) as gateway,
        interactive(project.root, project.home, gateway, "--permission-mode", mode) as terminal,
    ):
        terminal.say("/harness:status", until="STATUS-ANSWER")
        terminal.say("READ-ALL", until="READ-IT-ALL")
    assert gateway.failure is None
    results = tool_results(gateway.requests[-1].body)
    assert "exp-0001" in results["list"]
    assert "exp-0001 has no recomputed score" in results["tool"]


def test_without_it_the_cli_asks(fresh: Journey) -> None:
    with (
        open_gateway(READS) as gateway,
        interactive(fresh.root, fresh.home, gateway, "--permission-mode", "default") as terminal,
    ):
        assert "harness status" in terminal.say("READ-ALL", until=ASKED)
