"""Leases: who holds a lock and until when; a dead holder's is taken over and told, whatever the
machine; one of another machine that still runs is respected."""

import json
import os
import signal
import socket
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.artifacts.trees import this_tree
from harness.clock import SystemClock, iso
from harness.errors import RefusedError
from harness.ledger.project import open_project
from harness.runs.lock import (
    CLOCKS_APART_S,
    LASTS_S,
    holder,
    holding_seed,
    is_held,
    looping,
    supervising,
    try_supervising,
)
from tests.world import World

REPOSITORY = Path(__file__).resolve().parents[2]
HOLD = """\
import os, sys, time
from pathlib import Path
from harness.ledger.project import open_project
from harness.runs.lock import looping, supervising
with open_project(Path(sys.argv[1]), os.environ) as p, looping(p.layout):
    with supervising(p.layout, "exp-0001"):
        print("held", flush=True)
        time.sleep(600)
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World.make(tmp_path)
    made.open()
    return made


def other_process(world: World) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **world.environment, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", HOLD, str(world.root)]
    started = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    assert started.stdout is not None
    assert started.stdout.readline() == b"held\n"
    return started


def test_two_loops_and_a_person_are_told_who_holds_it_and_a_killed_one_is_taken_over(
    world: World,
) -> None:
    layout = world.project.layout
    first = other_process(world)
    try:
        for hold in (looping(layout), supervising(layout, "exp-0001")):
            with pytest.raises(RefusedError) as refused, hold:
                pass
            assert refused.value.code in ("loop_running", "already_training")
            for word in (f"process {first.pid} of ", socket.gethostname(), "lease ends at"):
                assert word in refused.value.message
        # Whoever only reads is not held up.
        with open_project(world.root, world.environment, read_only=True) as reader:
            assert [one.id for one in reader.ledger.experiments()] == ["exp-0001"]
            assert is_held(reader.layout, "exp-0001")
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
        first.stdout.close()  # type: ignore[union-attr]
    told: list[str] = []
    with looping(layout, told.append), supervising(layout, "exp-0001"):
        assert holder(_path(world))["pid"] == os.getpid()
    assert len(told) == 1
    assert f"taken over from process {first.pid} of " in told[0]
    with looping(layout, told.append):
        assert len(told) == 1, "it was given back, and nobody died"
    assert holder(_path(world)) == {}
    world.project.close()


COUNTS = [
    (60, True),
    (-1, False),
    (LASTS_S + CLOCKS_APART_S - 60, True),
    (LASTS_S + CLOCKS_APART_S + 60, False),
    (365 * 86400, False),
]
"""Seconds until a lease ends, by the clock of the other machine; whether it counts."""


def foreign(now: datetime, seconds: float) -> dict[str, Any]:
    """A lease of another machine, for so long from now on."""
    return {
        "owner": "bob",
        "host": "another-machine",
        "boot": "another-boot",
        "pid": 4711,
        "since": iso(now - timedelta(hours=2)),
        "until": iso(now + timedelta(seconds=seconds)),
    }


@pytest.mark.parametrize(("seconds", "runs"), COUNTS)
def test_a_lease_of_another_machine_counts_until_it_ends(
    world: World, seconds: float, runs: bool
) -> None:
    layout, now = world.project.layout, SystemClock().now()
    beside = _path(world).with_suffix(".lease.json")
    beside.parent.mkdir(parents=True, exist_ok=True)
    beside.write_text(json.dumps(foreign(now, seconds)))
    told: list[str] = []
    if runs:
        words = "process 4711 of bob on another-machine"
        with pytest.raises(RefusedError, match=words), looping(layout, told.append):
            pass
    else:
        with looping(layout, told.append):
            assert holder(_path(world))["host"] == socket.gethostname()
        assert "taken over from process 4711 of bob on another-machine" in told[0]
    world.project.close()


@pytest.mark.parametrize("part", ["", ".seed-7"])
@pytest.mark.parametrize(("seconds", "runs"), COUNTS)
def test_an_experiment_or_a_seed_of_it_that_another_machine_trains_is_held_until_its_lease_ends(
    world: World, part: str, seconds: float, runs: bool
) -> None:
    layout, now = world.project.layout, SystemClock().now()
    path = layout.state / "locks" / f"train-exp-0001{part}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()  # its kernel's lock is not seen here
    path.with_suffix(".lease.json").write_text(json.dumps(foreign(now, seconds)))
    assert is_held(layout, "exp-0001") == runs
    with try_supervising(layout, "exp-0001") as held:
        assert held != runs
    if runs:
        who = "trained by another process: process 4711 of bob on another-machine"
        refused = pytest.raises(RefusedError, match=f"exp-0001 is being {who}")
        with refused, supervising(layout, "exp-0001"):
            pass
    else:
        with supervising(layout, "exp-0001"), holding_seed(layout, "exp-0001", 7):
            assert holder(path)["host"] == socket.gethostname()
        assert not is_held(layout, "exp-0001")
    world.project.close()


def test_who_wants_a_seed_that_is_held_is_told_by_whom(world: World) -> None:
    layout, words = world.project.layout, f"process {os.getpid()} of .* on {socket.gethostname()}"
    refused = pytest.raises(RefusedError, match=f"^Seed 7 of exp-0001 is .*: {words}")
    with (
        holding_seed(layout, "exp-0001", 7),
        refused,
        holding_seed(layout, "exp-0001", 7, seconds=0.1),
    ):
        pass
    world.project.close()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"until": 3}', '{"until": "soon"}'])
def test_a_damaged_lease_blocks_nobody(world: World, text: str) -> None:
    beside = _path(world).with_suffix(".lease.json")
    beside.parent.mkdir(parents=True, exist_ok=True)
    beside.write_text(text)
    with looping(world.project.layout):
        assert holder(_path(world))["pid"] == os.getpid()
    world.project.close()


def test_it_is_renewed_before_it_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.runs.lock.RENEWED_S", 0.05)
    path = _path(world)
    with looping(world.project.layout):
        first = holder(path)["until"]
        while holder(path).get("until", first) == first:
            pass
        assert holder(path)["since"] < first
    assert LASTS_S > 0
    world.project.close()


def _path(world: World) -> Path:
    layout = world.project.layout
    return layout.state / "locks" / f"loop-{this_tree(layout).id}.lock"
