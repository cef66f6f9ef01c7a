"""kill -9 of driver, supervisor or CLI at seeded moments, then `continue`: the loop ends as if
undisturbed."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.journey import Journey, make_project
from tests.invariants.scenario import CONSTANT, SCENARIO
from tests.vault_key import give_key

MOMENTS = 30
VICTIMS = ("driver", "supervisor", "cli")
LEAST_KILLS = 25
FACT_SECONDS = 0.5
"""About as long as the loop takes from one fact to the next; moments lie within it, too."""
killed: list[int] = []
"""The moments that found their victim alive; a moment may fall behind the last process of its
kind."""

# Training that lasts long enough to be hit.
SLOW_TRAIN = (
    "    log.start(total_epochs=1)\n",
    "    log.start(total_epochs=1)\n    import time; time.sleep(0.7)\n",
)


def make(base: Path) -> tuple[Journey, Path]:
    """Each with the same seeds: by other ones the models may agree on all rows, or not."""
    journey = make_project(base / "project", base / "home")
    (journey.root / "constant.py").write_text(CONSTANT, "utf-8")
    train = journey.root / "train.py"
    train.write_text(train.read_text("utf-8").replace(*SLOW_TRAIN), "utf-8")
    scenario = base / "scenario.yaml"
    scenario.write_text(SCENARIO, "utf-8")
    assert journey.harness("init").exit_code == 0
    give_key(journey.state / "vault")
    assert journey.harness("plan", "approve").exit_code == 0
    return journey, scenario


def start(journey: Journey, scenario: Path, verb: str, sandbox: str) -> "subprocess.Popen[bytes]":
    with (scenario.parent / "loop.log").open("ab") as log:
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "harness",
                verb,
                "--scenario",
                str(scenario),
                "--sandbox",
                sandbox,
                "--reason",
                "A test.",
            ],
            cwd=journey.root,
            env=journey.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def ours(journey: Journey) -> list[psutil.Process]:
    """Living processes with this project in their command line or environment."""
    mark, found = str(journey.root.parent), []
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            words = " ".join(process.cmdline()) + " " + " ".join(process.environ().values())
        except psutil.Error:
            continue
        if mark in words:
            found.append(process)
    return found


def find(journey: Journey, driver: "subprocess.Popen[bytes]", victim: str) -> int | None:
    """The pid of the victim, when it lives now."""
    if victim == "driver":
        return driver.pid if driver.poll() is None else None
    for process in ours(journey):
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        named = {
            "supervisor": "harness" in words and "train" in words and "--project" in words,
            "cli": bool(words) and Path(words[0]).name == "claude",
        }
        if named[victim]:
            return process.pid
    return None


def facts(journey: Journey) -> dict[tuple[str, int], str]:
    """(writer, seq) -> hash of every fact in the ledger now."""
    with sqlite3.connect(
        f"file:{journey.state / 'ledger.db'}?mode=ro", uri=True, timeout=30
    ) as database:
        rows = database.execute("SELECT writer, seq, hash FROM facts").fetchall()
    return {(writer, seq): digest for writer, seq, digest in rows}


def wait_for(journey: Journey, driver: "subprocess.Popen[bytes]", many: int) -> None:
    """Until the ledger has so many facts, or the loop has ended."""
    while driver.poll() is None and len(facts(journey)) < many:
        time.sleep(0.02)


def require_launches_told(rows: list[dict[str, Any]]) -> None:
    """A run that was killed is one launch more, and the gate of a scored experiment says so, then
    and only then."""
    for row in rows:
        if row["n_seeds"] is not None:
            told = "launches_beyond_seeds" in {item["code"] for item in row["findings"]}
            assert told == (row["launches"] > row["n_seeds"]), row


def outcome(journey: Journey) -> dict[str, Any]:
    """What must not depend on where a kill fell: no times, no run numbers, no count of launches.
    Nor a lowered sandbox: each start of the loop with a weaker one is a decision of its own."""
    rows = journey.harness("experiment", "list", "--json").document["experiments"]
    require_launches_told(rows)
    decisions = journey.harness("decisions", "--json").document["decisions"]
    kept = (
        "experiment",
        "status",
        "hypothesis",
        "parent",
        "score",
        "n_seeds",
        "split",
        "tier",
        "verdict",
    )
    return {
        "experiments": [
            {name: row[name] for name in kept}
            | {
                "codes": sorted(
                    {item["code"] for item in row["findings"]} - {"launches_beyond_seeds"}
                )
            }
            for row in rows
        ],
        "decisions": [
            (row["kind"], row["experiment"]) for row in decisions if row["kind"] != "LOWER"
        ],
    }


def finish(
    journey: Journey, scenario: Path, driver: "subprocess.Popen[bytes]", sandbox: str
) -> None:
    """Let the loop end; continue it when it was cut."""
    log = scenario.parent / "loop.log"
    for _ in range(4):
        code = driver.wait(timeout=180)
        if code == 0:
            return
        driver = start(journey, scenario, "continue", sandbox)
    raise AssertionError(f"the loop did not end:\n{log.read_text('utf-8')[-4000:]}")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], range]:
    """The outcome, and how many facts the ledger had on the way to it, with nothing killed."""
    journey, scenario = make(tmp_path_factory.mktemp("undisturbed"))
    before = len(facts(journey))
    driver = start(journey, scenario, "run", "auto")
    assert driver.wait(timeout=180) == 0, (scenario.parent / "loop.log").read_text("utf-8")
    on_the_way = range(before, len(facts(journey)))
    ended = outcome(journey)
    assert [row["verdict"] for row in ended["experiments"]] == ["FAIL", "PASS"]
    assert ended["experiments"][0]["codes"][-1:] != []
    assert ended["decisions"] == [("DISCARD", "exp-0001"), ("KEEP", "exp-0002")]
    return ended, on_the_way


@pytest.mark.slow
@pytest.mark.parametrize("number", range(MOMENTS))
def test_killed_anywhere(
    undisturbed: tuple[dict[str, Any], range], tmp_path: Path, number: int
) -> None:
    expected, on_the_way = undisturbed
    chance = random.Random(number)
    victim, many = VICTIMS[number % len(VICTIMS)], chance.choice(on_the_way)
    sandbox = chance.choice(["bwrap", "landlock"]) if _has_bwrap() else "auto"
    journey, scenario = make(tmp_path)
    driver = start(journey, scenario, "run", sandbox)
    wait_for(journey, driver, many)
    time.sleep(chance.uniform(0.0, FACT_SECONDS))
    pid = find(journey, driver, victim)
    patience = time.monotonic() + 2.0
    while (
        pid is None and driver.poll() is None
    ):  # no such process at this moment: the next one, else the driver
        time.sleep(0.01)
        pid = find(journey, driver, victim if time.monotonic() < patience else "driver")
    before = facts(journey)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
        killed.append(number)
    finish(journey, scenario, driver, sandbox)
    after = facts(journey)
    assert {key: after.get(key) for key in before} == before, "a fact was lost"
    ended = outcome(journey)
    assert ended == expected, json.dumps([ended, expected], indent=1)
    assert journey.harness("ledger", "verify").exit_code == 0
    deadline = time.monotonic() + 5
    while (left := ours(journey)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left, [process.cmdline() for process in left]


@pytest.mark.slow
def test_nearly_every_moment_killed_something(request: pytest.FixtureRequest) -> None:
    """Comes last: with nothing killed, the test above would show nothing."""
    moments = [
        item for item in request.session.items if item.name.startswith("test_killed_anywhere[")
    ]
    if len(moments) < MOMENTS:
        pytest.skip(f"{len(moments)} of the {MOMENTS} moments are run")
    assert len(killed) >= LEAST_KILLS, f"only the moments {killed} killed something"


def _has_bwrap() -> bool:
    from harness.domain.statuses import SandboxKind
    from harness.sandbox.select import available

    return available()[SandboxKind.BWRAP] is None
