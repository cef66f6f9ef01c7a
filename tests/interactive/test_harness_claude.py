"""`harness claude` in a terminal: the real CLI in a sandbox, the judge outside, the journey of the
README by its tools, by Bash and by a slash command."""

import json
import shlex
import shutil
import sys
import time
import uuid
from pathlib import Path

import pytest

from harness.model_gateway.wire import tool_results
from tests.cli.journey import Journey
from tests.interactive.gateway import bash, call, delegate, open_gateway, shown
from tests.interactive.lab import must
from tests.interactive.sklearn_repository import git
from tests.interactive.tmux import QUESTION, Terminal, code_on, interactive
from tests.judge.inside import SANDBOXES, left_over, require_sandbox

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
        terminal.say("PLEASE CHEAT", until=QUESTION)
        code_on(terminal)
        terminal.keys("Enter")  # the person did not expect it
        terminal.wait_for("TRIED-IT", gone=QUESTION)
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
    # Under landlock .claude is in reach, and the CLI writes the person's answers there.
    assert audit["changes"] == []
    assert audit["unguarded"] == []
    ended(fresh.home)


FREE = ("--permission-mode", "default", "--allowedTools", "Bash,Write")


def an_experiment(root: Path) -> list[list[dict[str, object]]]:
    """What the model does in a session that has to show that its judge answers."""
    train = (
        "harness train exp-0001 > train.txt 2>&1; harness evaluate exp-0001 > evaluate.txt 2>&1;"
        " echo over > over.txt"
    )
    config = str(root / EXPERIMENT / "config.yaml")
    return [
        [bash("new", "harness experiment new --hypothesis centroids 2>&1")],
        [call("config", "Write", file_path=config, content="model: centroids\n")],
        [bash("train", train, timeout=240_000)],
    ]


def row_of(journey: Journey, root: Path) -> dict[str, str]:
    answer = must(journey.harness("experiment", "list", "--json", cwd=root))
    (row,) = answer.document["experiments"]
    return {name: row[name] for name in ("experiment", "evidence")}


def test_a_session_that_is_resumed_goes_on(fresh: Journey) -> None:
    """It sees the earlier conversation, and has a judge of its own."""
    root, session = fresh.root, str(uuid.uuid4())
    prompts = {
        "PLEASE REMEMBER THE WORD quokka": ["FIRST-ANSWER"],
        "PLEASE GO ON": [*an_experiment(root), "SECOND-ANSWER"],
    }
    started = program("bwrap")
    with open_gateway(prompts) as gateway:
        first = ("--session-id", session, *FREE)
        with interactive(root, fresh.home, gateway, *first, program=started) as terminal:
            terminal.say("PLEASE REMEMBER THE WORD quokka", until="FIRST-ANSWER")
            terminal.write("/exit")
            terminal.keys("Enter")
            ended(fresh.home)
        again = ("--resume", session, *FREE)
        with interactive(root, fresh.home, gateway, *again, program=started) as terminal:
            terminal.wait_for("FIRST-ANSWER")
            terminal.say("PLEASE GO ON", until="PLEASE GO ON")
            until(terminal, root / "over.txt")
            terminal.wait_for("SECOND-ANSWER")
        asked = next(item for item in gateway.requests if "PLEASE GO ON" in shown(item))
        assert "quokka" in shown(asked)
        assert "FIRST-ANSWER" in shown(asked)
    assert gateway.failure is None
    assert "completed" in (root / "train.txt").read_text()
    assert row_of(fresh, root) == {"experiment": "exp-0001", "evidence": "recomputed"}
    receipts = root / ".harness/receipts" / f"{session}.jsonl"
    assert '"sandbox":"bwrap"' in receipts.read_text().replace(" ", "")
    ended(fresh.home)


BUILDER = "model-builder"


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_a_subagent_works_inside(fresh: Journey, sandbox: str) -> None:
    """It asks the judge as its session does, writes its own file, and has no more in reach."""
    require_sandbox(sandbox)
    root = fresh.root
    config = str(root / EXPERIMENT / "config.yaml")
    tries = [
        bash("secrets", f"cat '{fresh.state}'/ledger.db; echo over"),
        bash("lower", "harness train exp-0001 --sandbox none; echo code $?"),
        call("result", "Write", file_path=str(root / EXPERIMENT / "result.md"), content="9\n"),
    ]
    steps = [
        [call("open", OPEN, hypothesis="centroids", rationale="They are blobs.")],
        [call("config", "Write", file_path=config, content="model: centroids\n")],
        tries,
        "Built.",
    ]
    delegated = delegate("agent", "PLEASE BUILD", BUILDER)
    prompts = {
        # On a slow machine the tools are not there at once.
        "PLEASE DELEGATE": [[bash("wait", "sleep 8")], [delegated], "DELEGATED-IT"],
        "PLEASE TRAIN": [*an_experiment(root)[2:], "TRAINED-IT"],
    }
    words = ("--permission-mode", "default", "--allowedTools", f"Bash,Write,Agent,{OPEN}")
    with (
        open_gateway(prompts, {"PLEASE BUILD": steps}) as gateway,
        interactive(root, fresh.home, gateway, *words, program=program(sandbox)) as terminal,
    ):
        terminal.say("PLEASE DELEGATE", until="DELEGATED-IT", patience=120.0)
        terminal.say("PLEASE TRAIN", until="PLEASE TRAIN")
        until(terminal, root / "over.txt")
        terminal.wait_for("TRAINED-IT")
        own = [item for item in gateway.requests if item.subagent]
        results = tool_results(own[-1].body)
    assert gateway.failure is None
    assert f"harness: you are the {BUILDER}" in shown(own[0])
    assert "SQLite format" not in results["secrets"]
    assert "lowers isolation" in results["lower"]
    assert "harness: " in results["result"]
    assert not (root / EXPERIMENT / "result.md").exists()
    assert "completed" in (root / "train.txt").read_text()
    open_ = ", local sockets not isolated" if sandbox == "landlock" else ""
    assert row_of(fresh, root) == {"experiment": "exp-0001", "evidence": f"recomputed{open_}"}
    lines = [
        json.loads(line)
        for path in (root / ".harness/receipts").glob("*.jsonl")
        for line in path.read_text("utf-8").splitlines()
    ]
    assert {line["sandbox"] for line in lines} == {sandbox}
    by_role = [line for line in lines if line.get("role") == BUILDER]
    assert {line["event"] for line in by_role} >= {"PreToolUse", "PostToolUse"}
    must(fresh.harness("ledger", "verify"))
    ended(fresh.home)


def test_a_linked_worktree(fresh: Journey, tmp_path: Path) -> None:
    """Its repository and its guards' snapshot are those of the main worktree, to be read; training
    runs the worktree's code."""
    root, tree = fresh.root, tmp_path / "a worktree"
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "A project")
    git(root, "worktree", "add", "-q", "-b", "side", str(tree))
    shutil.copytree(root / "data", tree / "data")
    (tree / "train.py").write_text((tree / "train.py").read_text() + "print('THE-TREE')\n")
    main = shlex.quote(str(root))
    tries = [
        bash("git", "git status --short && git log --oneline"),
        bash("main", f"echo x > {main}/plan.md; echo x > {main}/.git/config; echo tried"),
        bash("judge", "harness plan approve; echo code $?"),
        call("plan", "Write", file_path=str(tree / ".harness/config.toml"), content="x"),
        call("fine", "Write", file_path=str(tree / "typed.py"), content="x = 1\n"),
    ]
    kept = {path: path.read_bytes() for path in (root / "plan.md", root / ".git/config")}
    prompts = {
        "PLEASE LOOK": [tries, "LOOKED"],
        "PLEASE GO ON": [*an_experiment(tree), "WENT-ON"],
    }
    with (
        open_gateway(prompts) as gateway,
        interactive(tree, fresh.home, gateway, *FREE, program=program("bwrap")) as terminal,
    ):
        terminal.say("PLEASE LOOK", until=QUESTION)
        code_on(terminal)
        terminal.keys("Enter")  # the person did not expect it
        terminal.wait_for("LOOKED", gone=QUESTION)
        terminal.say("PLEASE GO ON", until="PLEASE GO ON")
        until(terminal, tree / "over.txt")
        terminal.wait_for("WENT-ON")
        results = tool_results(gateway.requests[-1].body)
    assert gateway.failure is None
    assert "A project" in results["git"]
    assert "train.py" in results["git"]
    assert "human" in results["judge"] or "person" in results["judge"]
    assert (tree / "typed.py").read_text() == "x = 1\n"
    assert {path: path.read_bytes() for path in kept} == kept
    assert (tree / ".harness/config.toml").read_text() != "x"
    assert "completed" in (tree / "train.txt").read_text()
    stdout = [path.read_text() for path in (tree / EXPERIMENT).glob("runs/*/stdout.log")]
    assert stdout
    assert all("THE-TREE" in text for text in stdout)
    assert row_of(fresh, tree) == {"experiment": "exp-0001", "evidence": "recomputed"}
    must(fresh.harness("ledger", "verify", cwd=tree))
    ended(fresh.home)


def ended(home: Path) -> None:
    """Wait until no process of a session is left."""
    end = time.monotonic() + 30
    while left_over(home) and time.monotonic() < end:
        time.sleep(0.2)
    assert left_over(home) == []
