"""What Claude Code's own dialogs write into a project touches no verdict, and what is allowed at
`init` asks nothing: every dialog is answered by keys."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.journey import Journey
from tests.interactive.gateway import bash, call, open_gateway
from tests.interactive.lab import make_fresh, must
from tests.interactive.tmux import PROMPT, interactive

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: apt install tmux"
)
EXPERIMENT = ".harness/experiments/exp-0001"
ASKED = "Do you want to"
"""Begins each of the CLI's questions before a call."""
READS = (
    "status",
    "experiment list",
    "decisions",
    "plan check",
    "priors list",
    "gate check exp-0001",
)


def passed(project: Journey) -> None:
    """One open experiment with a PASS on validation."""
    must(project.harness("experiment", "new", "--hypothesis", "centroids"))
    (project.root / EXPERIMENT / "config.yaml").write_text("model: centroids\n", "utf-8")
    (project.root / EXPERIMENT / "next.md").write_text("Try more.\n", "utf-8")
    must(project.harness("train", "exp-0001"))
    must(project.harness("evaluate", "exp-0001"))
    must(project.harness("experiment", "result", "exp-0001", "--summary", "As measured."))
    must(project.harness("gate", "check", "exp-0001"))


def local(project: Journey) -> dict[str, Any]:
    path = project.root / ".claude/settings.local.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def still_passes(project: Journey) -> None:
    answer = project.harness("gate", "check", "exp-0001", "--json")
    assert (answer.exit_code, answer.document["verdict"]) == (0, "PASS"), answer.stdout
    audit = project.harness("audit", CLAUDE_CONFIG_DIR=str(project.home / "config"))
    assert audit.exit_code == 0, audit.stdout
    assert "nothing found" in audit.stdout


def test_each_dialog_of_the_cli_leaves_a_pass_as_it_is(fresh: Journey) -> None:
    passed(fresh)
    prompts = {"PLEASE LOOK": [[bash("look", "date --iso-8601 > when.txt")], "LOOKED"]}
    with (
        open_gateway(prompts) as gateway,
        interactive(fresh.root, fresh.home, gateway, "--permission-mode", "default") as terminal,
    ):
        assert local(fresh)["enabledMcpjsonServers"] == ["harness"]
        still_passes(fresh)
    assert gateway.failure is None
