"""The plugin under `harness claude`: the project has no hooks of its own, the plugin's guard the
session, and all that they tell goes to the judge outside."""

import json
import shutil
import time
from pathlib import Path

import pytest

from harness.model_gateway.wire import tool_results
from tests.cli.journey import Journey
from tests.interactive.gateway import bash, call, open_gateway
from tests.interactive.lab import must
from tests.interactive.test_harness_claude import (
    ATTEMPTS,
    EXPERIMENT,
    ended,
    program,
    row_of,
    until,
)
from tests.interactive.test_plugin import SERVER
from tests.interactive.tmux import interactive
from tests.judge.inside import SANDBOXES, require_sandbox

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: apt install tmux"
)
OPEN = f"{SERVER}__open_experiment"
GRADES = {"bwrap": "recomputed", "landlock": "recomputed, local sockets not isolated"}


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_the_plugin_guards_a_session_inside(bare: Journey, copied: Path, sandbox: str) -> None:
    require_sandbox(sandbox)
    root = bare.root
    config = str(root / EXPERIMENT / "config.yaml")
    train = (
        "harness train exp-0001 > train.txt 2>&1; harness evaluate exp-0001 > evaluate.txt 2>&1;"
        " echo over > over.txt"
    )
    tries = [
        call("policy", "Write", file_path=str(root / ".harness/policy.json"), content="x"),
        bash("plugin", f"echo '# more' >> {copied}/hooks/run.py; echo code $?"),
        bash("direct", "python3 train.py"),
    ]
    prompts = {
        **{
            f"PLEASE OPEN {number}": [
                [call(f"open{number}", OPEN, hypothesis="centroids", rationale="They are blobs.")],
                f"OPENED-{number}",
            ]
            for number in ATTEMPTS
        },
        "PLEASE GO ON": [
            [call("config", "Write", file_path=config, content="model: centroids\n")],
            [bash("train", train, timeout=240_000)],
            "WENT-ON",
        ],
        "PLEASE CHEAT": [tries, "TRIED-IT"],
        "The harness says": ["STATUS-ANSWER"],
    }
    hook = (copied / "hooks/run.py").read_bytes()
    words = ("--plugin-dir", str(copied), "--permission-mode", "default")
    allowed = ("--allowedTools", f"Bash,Write,{SERVER}")
    with (
        open_gateway(prompts) as gateway,
        interactive(
            root, bare.home, gateway, *words, *allowed, program=program(sandbox)
        ) as terminal,
    ):
        terminal.wait_for("harness:", "approved")
        for number in ATTEMPTS:  # on a slow machine the tools are not there at once
            terminal.say(f"PLEASE OPEN {number}", until=f"OPENED-{number}")
            if (root / EXPERIMENT).exists():
                break
            time.sleep(5)
        terminal.say("PLEASE GO ON", until="PLEASE GO ON")
        until(terminal, root / "over.txt")
        terminal.wait_for("WENT-ON")
        terminal.say("/harness:status", until="STATUS-ANSWER")
        terminal.say("PLEASE CHEAT", until="TRIED-IT")
        results = tool_results(gateway.requests[-1].body)
    assert gateway.failure is None
    assert "completed" in (root / "train.txt").read_text()
    for label in ("policy", "plugin", "direct"):
        assert "harness: " in results[label], results[label]
    assert (copied / "hooks/run.py").read_bytes() == hook
    assert json.loads((root / ".harness/policy.json").read_text("utf-8"))["root"] == str(root)
    assert row_of(bare, root) == {"experiment": "exp-0001", "evidence": GRADES[sandbox]}
    lines = [
        json.loads(line)
        for path in (root / ".harness/receipts").glob("*.jsonl")
        for line in path.read_text("utf-8").splitlines()
    ]
    assert {"PreToolUse", "PostToolUse", "SessionStart"} <= {line["event"] for line in lines}
    assert {(line["hooks"], line["sandbox"]) for line in lines} == {("plugin", sandbox)}
    must(bare.harness("ledger", "verify"))
    ended(bare.home)
