"""`harness claude` in a terminal: the real CLI in a sandbox, the judge outside, the journey of the
README by its tools, by Bash and by a slash command."""

import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.cli.journey import Journey
from tests.interactive.gateway import bash, call, open_gateway
from tests.interactive.lab import must
from tests.interactive.tmux import Terminal, interactive
from tests.judge.inside import SANDBOXES, left_over

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: apt install tmux"
)
OPEN = "mcp__harness__open_experiment"
ATTEMPTS = range(1, 9)
EXPERIMENT = ".harness/experiments/exp-0001"


def program(sandbox: str) -> list[str]:
    return [sys.executable, "-P", "-I", "-m", "harness", "claude", "--sandbox", sandbox, "--"]


def until(terminal: Terminal, path: Path, seconds: float = 200.0) -> None:
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not come; the screen:\n{terminal.screen()}"
        time.sleep(0.2)


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_the_journey_inside(fresh: Journey, sandbox: str) -> None:
    root, state = fresh.root, fresh.state
    secrets = f"cat '{state}'/ledger.db '{state}'/vault/held_out/* '{state}'/anchors/* 2>&1"
    journey = (
        "harness train exp-0001 > train.txt 2>&1; harness evaluate exp-0001 > evaluate.txt 2>&1;"
        " harness experiment result exp-0001 --summary 'As measured.' > result.txt 2>&1;"
        " harness gate check exp-0001 > gate.txt 2>&1; echo over > over.txt"
    )
    tries = [
        bash("secrets", f"{secrets}; echo over"),
        bash("lower", "harness train exp-0001 --sandbox none; echo code $?"),
        bash("approve", "harness plan approve; echo code $?"),
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
            [
                call(
                    "config",
                    "Write",
                    file_path=str(root / EXPERIMENT / "config.yaml"),
                    content="model: centroids\n",
                ),
                call(
                    "next",
                    "Write",
                    file_path=str(root / EXPERIMENT / "next.md"),
                    content="Try more.\n",
                ),
            ],
            [bash("journey", journey, timeout=240_000)],
            "WENT-ON",
        ],
        "PLEASE CHEAT": [tries, "TRIED-IT"],
        "The harness says": ["STATUS-ANSWER"],
    }
    words = ("--permission-mode", "default", "--allowedTools", f"Bash,Write,{OPEN}")
    with (
        open_gateway(prompts) as gateway,
        interactive(root, fresh.home, gateway, *words, program=program(sandbox)) as terminal,
    ):
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
        results = "\n".join(str(request.body["messages"]) for request in gateway.requests)
    assert gateway.failure is None
    told = {name: (root / f"{name}.txt").read_text() for name in ("train", "evaluate", "gate")}
    assert "completed" in told["train"]
    assert "PASS" in told["gate"], told
    assert f"runs in a sandbox ({sandbox})" in results
    assert "lowers isolation" in results
    assert "SQLite format" not in results
    (row,) = must(fresh.harness("experiment", "list", "--json")).document["experiments"]
    open_ = ", local sockets not isolated" if sandbox == "landlock" else ""
    assert (row["verdict"], row["evidence"]) == ("PASS", f"recomputed{open_}")
    must(fresh.harness("ledger", "verify"))
    audit = fresh.harness("audit", "--json", CLAUDE_CONFIG_DIR=str(fresh.home / "config")).document
    # Under landlock .claude is in reach, and the CLI itself moves its own answers there.
    moved = [".claude/settings.local.json"] if sandbox == "landlock" else []
    assert [change["path"] for change in audit["changes"]] == moved
    assert audit["unguarded"] == []
    end = time.monotonic() + 20
    while left_over(fresh.home) and time.monotonic() < end:
        time.sleep(0.2)
    assert left_over(fresh.home) == []
