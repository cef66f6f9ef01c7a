"""Several at work in one project at once: two sessions of `harness claude` by one person, and one
beside a loop. Who comes second is told what it shares; both work, and no fact is lost."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.model_gateway.wire import tool_results
from tests.centroids import slow_train
from tests.cli.journey import Journey
from tests.interactive.gateway import Turn, bash, call, open_gateway, shown
from tests.interactive.lab import facts_named, must
from tests.interactive.test_harness_claude import (
    EXPERIMENT,
    FREE,
    ended,
    program,
    row_of,
    until,
)
from tests.interactive.tmux import QUESTION, code_on, interactive
from tests.scenarios.toy_project import builder, oracle, write_scenario

pytestmark = [
    pytest.mark.skipif(
        shutil.which("tmux") is None, reason="tmux is not installed: apt install tmux"
    ),
    pytest.mark.timeout(900),
]
AT_WORK = "A session of `harness claude` is at work in this working tree (process "
SHARED = (
    "You share its ledger, the plan's budget and the looks, its files and its open experiment."
)
LOOP_AT_WORK = "A loop of `harness run` is at work in this working tree (process "
NOTES = 3
WORKING_S = 240.0


def notes(label: str) -> list[Turn]:
    write = f"harness handoff --note 'From {label}, '$n || echo LOST"
    return [[bash(label, f"for n in $(seq {NOTES}); do {write}; done")], f"{label}-WROTE"]


def told(*requests: object) -> dict[str, str]:
    found: dict[str, str] = {}
    for request in requests:
        found |= tool_results(request.body)  # type: ignore[attr-defined]
    return found


def hand_offs(journey: Journey) -> list[str]:
    rows = facts_named(journey.state / "ledger.db", "hand_off_written")
    return sorted(row["text"] for row in rows)


def test_two_sessions_share_one_experiment(fresh: Journey) -> None:
    root = fresh.root
    (root / "train.py").write_text(slow_train(8), "utf-8")
    train = "touch began.txt; harness train exp-0001 > train.txt 2>&1; echo over > over.txt"
    config, ideas = (str(root / EXPERIMENT / name) for name in ("config.yaml", "next.md"))
    result = "harness evaluate exp-0001 && harness experiment result exp-0001 --summary Measured."
    prompts: dict[str, list[Turn]] = {
        "PLEASE BEGIN": [
            [bash("new", "harness experiment new --hypothesis centroids 2>&1")],
            [
                call("config", "Write", file_path=config, content="model: centroids\n"),
                call("next", "Write", file_path=ideas, content="Try more.\n"),
            ],
            [bash("train", train, timeout=240_000)],
            "TRAINED-IT",
        ],
        "PLEASE JOIN": [
            [bash("again", "sleep 2; harness train exp-0001; echo code $?")],
            [
                bash("status", "harness status"),
                bash("second", "harness experiment new --hypothesis rivals"),
                call("note", "Write", file_path=str(root / "notes.md"), content="Mine.\n"),
            ],
            "JOINED-IT",
        ],
        "NOTES OF THE FIRST": notes("FIRST"),
        "NOTES OF THE SECOND": notes("SECOND"),
        "PLEASE JUDGE": [[bash("judge", f"{result}; echo code $?")], "JUDGED-IT"],
        "PLEASE KEEP": [[bash("keep", "harness keep exp-0001; echo code $?")], "KEPT-IT"],
        "PLEASE LOOK": [[bash("look", "harness experiment list")], "LOOKED-AT-IT"],
    }
    started = program("bwrap")
    with (
        open_gateway(prompts) as gateway,
        interactive(root, fresh.home, gateway, *FREE, program=started) as first,
    ):
        assert AT_WORK not in first.screen()
        with interactive(root, fresh.home, gateway, *FREE, program=started) as second:
            screen = " ".join(second.wait_for("startup says: harness:").split())
            assert AT_WORK in screen
            assert SHARED in screen
            first.say("PLEASE BEGIN", until="PLEASE BEGIN")
            until(first, root / "began.txt")
            second.say("PLEASE JOIN", until="JOINED-IT", patience=WORKING_S)
            assert not (root / "over.txt").exists()  # the first one's training goes on
            until(first, root / "over.txt")
            first.wait_for("TRAINED-IT", patience=WORKING_S)
            first.write("NOTES OF THE FIRST")
            first.keys("Enter")
            second.say("NOTES OF THE SECOND", until="SECOND-WROTE", patience=WORKING_S)
            first.wait_for("FIRST-WROTE", patience=WORKING_S)
            first.say("PLEASE JUDGE", until="JUDGED-IT", patience=WORKING_S)
            second.say("PLEASE KEEP", until=QUESTION)
            assert QUESTION not in first.screen()
            second.keys(code_on(second), "Enter")
            second.wait_for("harness: exit 0.", "Press Enter to go back", patience=WORKING_S)
            second.keys("Enter")
            second.wait_for("KEPT-IT", gone=QUESTION)
            second.write("/exit")
            second.keys("Enter")
        first.say("PLEASE LOOK", until="LOOKED-AT-IT")
        results = told(*gateway.requests)
        joined = next(item for item in gateway.requests if "PLEASE JOIN" in shown(item))
        began = next(item for item in gateway.requests if "PLEASE BEGIN" in shown(item))
    assert gateway.failure is None
    assert f"As it began: {AT_WORK}" in shown(joined)
    assert "As it began" not in shown(began)
    assert "exp-0001" in results["status"]
    assert "exp-0001" in results["second"]
    assert "harness: " in results["second"]
    assert "is being trained by another process" in results["again"]
    assert "kept" in results["look"]
    assert "completed" in (root / "train.txt").read_text()
    assert (root / "notes.md").read_text() == "Mine.\n"
    texts = [f"From {name}, {n}" for name in ("FIRST", "SECOND") for n in range(1, NOTES + 1)]
    assert hand_offs(fresh) == texts
    assert row_of(fresh, root) == {"experiment": "exp-0001", "evidence": "recomputed"}
    must(fresh.harness("ledger", "verify"))
    audit = fresh.harness("audit", "--json", CLAUDE_CONFIG_DIR=str(fresh.home / "config")).document
    assert audit["changes"] == []
    assert audit["unguarded"] == []
    assert len(list((root / ".harness/receipts").glob("*.jsonl"))) == 2
    ended(fresh.home)


def appeared(path: Path, loop: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + WORKING_S
    while not path.exists():
        assert loop.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.1)


def test_a_session_beside_a_loop(fresh: Journey, tmp_path: Path) -> None:
    root = fresh.root
    said = builder(1, train=slow_train(15), hypothesis="Centres tell them apart")
    scenario = write_scenario(tmp_path / "loop.yaml", said, oracle(1))
    words = [sys.executable, "-m", "harness", "run", "--scenario", str(scenario), "--json"]
    prompts: dict[str, list[Turn]] = {
        "PLEASE JOIN": [
            [bash("status", "harness status")],
            [
                bash("second", "harness experiment new --hypothesis rivals"),
                call("note", "Write", file_path=str(root / "side.py"), content="x = 1\n"),
            ],
            "JOINED-IT",
        ],
        "NOTES OF THE SECOND": notes("SECOND"),
        "PLEASE LOOK": [[bash("look", "harness experiment list")], "LOOKED-AT-IT"],
    }
    log = tmp_path / "loop.txt"
    with log.open("wb") as output:
        loop = subprocess.Popen(
            words,
            cwd=root,
            env=fresh.environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        with open_gateway(prompts) as gateway:
            started = program("bwrap")
            appeared(root / EXPERIMENT / "runs/run-01", loop, log)
            with interactive(root, fresh.home, gateway, *FREE, program=started) as terminal:
                assert loop.poll() is None, log.read_text()
                screen = terminal.wait_for("startup says: harness:")
                assert LOOP_AT_WORK in " ".join(screen.split())
                terminal.say("PLEASE JOIN", until="JOINED-IT", patience=WORKING_S)
                terminal.say("NOTES OF THE SECOND", until="SECOND-WROTE", patience=WORKING_S)
                assert loop.wait(timeout=WORKING_S) == 0, log.read_text()
                terminal.say("PLEASE LOOK", until="LOOKED-AT-IT")
            results = told(*gateway.requests)
    finally:
        loop.kill()
    assert gateway.failure is None
    assert '"reason": "target"' in log.read_text()
    assert "exp-0001" in results["status"]
    assert "harness: " in results["second"]
    assert "exp-0001" in results["look"]
    assert (root / "side.py").read_text() == "x = 1\n"
    assert hand_offs(fresh) == [f"From SECOND, {n}" for n in range(1, NOTES + 1)]
    assert row_of(fresh, root) == {"experiment": "exp-0001", "evidence": "recomputed"}
    must(fresh.harness("ledger", "verify"))
    config = str(fresh.home / "config")
    audit = fresh.harness("audit", "--json", CLAUDE_CONFIG_DIR=config).document
    assert audit["unguarded"] == []
    assert audit["changes"] == []
    ended(fresh.home)
