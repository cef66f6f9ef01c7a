"""One seed a GPU: leased, never twice, and free again when its holder was killed."""

import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from placed_support import answer, logs, placing, program
from runs_support import wait_until

from harness.domain.statuses import FINAL_RUNS, RunStatus
from harness.errors import ConfigError
from harness.runs.leases import leased_cards

CONFIG = "[launchers.local]\ngpus = 1\n"
CARDS = "GPU-a,GPU-b"


def test_seeds_train_at_once_each_on_a_card_of_its_own(tmp_path: Path) -> None:
    placed = placing(tmp_path, CONFIG, seeds=3, train=program(6, 0.3))
    said = placed.train("exp-0001", "--sandbox", "auto", CUDA_VISIBLE_DEVICES=CARDS)
    assert said["ok"], said
    with placed.project(read_only=True) as project:
        runs = project.ledger.runs("exp-0001")
        assert [run.status for run in runs] == [RunStatus.COMPLETED] * 3
        used = [(run.handle["placed"]["cards"], run.started_at, run.ended_at) for run in runs]
        assert {len(cards) for cards, _, _ in used} == {1}
        by_card = {name: [one for one in used if one[0] == [name]] for name in CARDS.split(",")}
        assert all(by_card.values())  # both were used
        for name, held in by_card.items():
            for before, after in itertools.pairwise(held):
                assert before[2] <= after[1], name
        first, second = sorted(used, key=lambda one: one[1])[:2]
        assert second[1] < first[2]  # side by side
        assert runs[0].job["launcher"] == "local"
        for run in runs:
            (card,) = run.handle["placed"]["cards"]
            assert f"cards {card}" in logs(placed, "exp-0001", run.id)


def test_a_run_whose_worker_is_killed_is_lost_and_not_stopped_by_a_person(tmp_path: Path) -> None:
    """Also before its first row."""
    train = program(600, 0.1).replace("with Run", "time.sleep(600)\nwith Run", 1)
    placed = placing(tmp_path, CONFIG, seeds=1, train=train)
    process = placed.start("exp-0001", CUDA_VISIBLE_DEVICES="0")
    with placed.project(read_only=True) as project:

        def supervisor() -> int:
            runs = project.ledger.runs("exp-0001")
            return (runs[0].supervisor or {}).get("pid", 0) if runs else 0

        wait_until(supervisor, 60)
        worker = psutil.Process(supervisor()).parent()
        assert worker is not None
        worker.kill()
        assert not answer(process)["ok"]
        (run,) = project.ledger.runs("exp-0001")
    assert run.status is RunStatus.LOST
    assert re.fullmatch(r"its local worker on \S+ died; the run was ended with it", run.reason)


def test_a_machine_without_so_many_cards_is_refused(tmp_path: Path) -> None:
    placed = placing(tmp_path, CONFIG)
    said = placed.train("exp-0001", CUDA_VISIBLE_DEVICES="")
    assert (said["error"]["code"], said["exit"]) == ("too_few_gpus", 2)
    with placed.project(read_only=True) as project:
        assert project.ledger.runs("exp-0001") == []


def test_the_lease_of_a_killed_holder_is_free_again(tmp_path: Path) -> None:
    variables = {"HOME": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0"}
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, time\nfrom harness.runs.leases import leased_cards\n"
            f"with leased_cards(1, {variables!r}, print):\n"
            "    print('held', flush=True)\n    time.sleep(60)",
        ],
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    waited: list[float] = []

    def told(event: dict[str, object]) -> None:
        assert event["kind"] == "waiting"
        waited.append(time.monotonic())
        holder.kill()

    with leased_cards(1, variables, told) as cards:
        assert cards.names == ("0",)
    holder.wait()
    assert len(waited) == 1


def test_more_cards_than_there_are_is_a_sentence(tmp_path: Path) -> None:
    variables = {"HOME": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0,1"}
    with (
        pytest.raises(ConfigError, match="asks for 3 GPUs; this machine shows 2"),
        leased_cards(3, variables, print),
    ):
        pass


def test_a_stop_ends_every_seed_and_frees_its_card(tmp_path: Path) -> None:
    placed = placing(tmp_path, CONFIG, train=program(400, 0.1))
    process = placed.start("exp-0001", CUDA_VISIBLE_DEVICES=CARDS)
    with placed.project(read_only=True) as project:

        def running() -> bool:
            runs = project.ledger.runs("exp-0001")
            return len(runs) == 2 and all(run.status is RunStatus.RUNNING for run in runs)

        wait_until(running, 60)
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=90)
        runs = project.ledger.runs("exp-0001")
        assert [run.status for run in runs] == [RunStatus.CANCELLED] * 2
    variables = {**placed.environment, "CUDA_VISIBLE_DEVICES": CARDS}
    with leased_cards(2, variables, print) as cards:
        assert cards.names == tuple(CARDS.split(","))


def test_a_killed_fan_leaves_seeds_that_nobody_trains_twice(tmp_path: Path) -> None:
    placed = placing(tmp_path, CONFIG, train=program(30, 0.2))
    process = placed.start("exp-0001", CUDA_VISIBLE_DEVICES=CARDS)
    with placed.project(read_only=True) as project:
        wait_until(lambda: len(project.ledger.runs("exp-0001")) == 2, 60)
        process.kill()
        process.communicate()
        said = placed.train("exp-0001", CUDA_VISIBLE_DEVICES=CARDS)
        assert said["error"]["code"] == "already_training"

        def closed() -> bool:
            return all(run.status in FINAL_RUNS for run in project.ledger.runs("exp-0001"))

        wait_until(closed, 60)
        assert [run.status for run in project.ledger.runs("exp-0001")] == [RunStatus.COMPLETED] * 2
    again = answer(placed.start("exp-0001", CUDA_VISIBLE_DEVICES=CARDS))
    assert (again["ok"], len(again["runs"])) == (True, 2)
