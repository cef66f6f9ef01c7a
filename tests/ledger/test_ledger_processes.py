"""Several processes on one ledger: distinct ids, waiting, reading while another writes, and kill
-9."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ledger_samples import full_ledger, life, open_ledger, place

from harness.clock import SystemClock
from harness.errors import LedgerBusyError
from harness.ledger.verify import verify

WORKER = Path(__file__).with_name("mint_worker.py")
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""


def start(*arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, str(WORKER), *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )


def mint_together(folder: Path, processes: int, each: int, *more: object) -> list[str]:
    """All processes also race to create the ledger."""
    workers = [start(folder, each, *more) for _ in range(processes)]
    ids: list[str] = []
    for worker in workers:
        out, errors = worker.communicate(timeout=280)
        assert worker.returncode == 0, errors
        ids += out.split()
    return ids


def check_mint(folder: Path, ids: list[str], expected: int) -> None:
    assert len(ids) == len(set(ids)) == expected
    with open_ledger(folder, read_only=True) as ledger:
        assert [item.id for item in ledger.experiments()] == sorted(ids)
    assert verify(place(folder), folder / "anchors") == []


def test_w3_processes_get_distinct_ids(tmp_path):
    check_mint(tmp_path, mint_together(tmp_path, 8, 25), 200)


def test_case_34_every_folder_is_made_by_exactly_one_process(tmp_path):
    (tmp_path / "experiments" / "exp-0003").mkdir(parents=True)  # of a ledger that was lost
    ids = mint_together(tmp_path, 4, 5, tmp_path / "experiments")
    assert len(set(ids)) == 20
    assert "exp-0003" not in ids
    assert {path.name for path in (tmp_path / "experiments").iterdir()} == {*ids, "exp-0003"}


@pytest.mark.slow
def test_sixteen_processes_open_3200_experiments(tmp_path):
    check_mint(tmp_path, mint_together(tmp_path, 16, 200), 3200)


def test_w3_kill_9_loses_no_acknowledged_fact(tmp_path):
    choose = random.Random(11)
    told: list[str] = []
    for _ in range(5):
        worker = start(tmp_path, 10_000)
        assert worker.stdout is not None
        for _ in range(choose.randrange(1, 40)):
            told.append(worker.stdout.readline().strip())
        os.kill(worker.pid, signal.SIGKILL)
        told += [line for line in worker.communicate()[0].split("\n") if len(line) == 8]
    with open_ledger(tmp_path) as ledger:
        kept = [item.id for item in ledger.experiments()]
        assert set(told) <= set(kept)
        assert len(kept) <= len(told) + 5  # at most one a kill was committed and not told
        ledger.open_experiment(hypothesis="after", parent=None, by="me")
    assert verify(place(tmp_path), tmp_path / "anchors") == []


@pytest.fixture
def holder(tmp_path):
    """Another process that holds a write transaction until it is told a line."""
    full_ledger(tmp_path).close()
    command = [sys.executable, "-c", HOLD, str(tmp_path / "ledger.db")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_case_36_a_writer_that_waits_in_vain_says_so_and_readers_do_not_wait(tmp_path, holder):
    with open_ledger(tmp_path, busy_seconds=0.3, clock=SystemClock()) as ledger:
        with pytest.raises(
            LedgerBusyError, match=r"ledger\.db is being written by another process"
        ) as busy:
            ledger.open_experiment(hypothesis="h", parent=None, by="me")
        assert "Try again" in busy.value.hint
        assert len(ledger.experiments()) == 3
    with open_ledger(tmp_path, read_only=True, busy_seconds=0.0) as reader:
        assert len(reader.experiments()) == 3
    assert verify(place(tmp_path), tmp_path / "anchors") == []


def test_case_36_a_writer_waits_for_the_other_one(tmp_path, holder):
    waiting = start(tmp_path, 1)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.communicate(timeout=1.5)
    holder.communicate("go on\n")
    out, errors = waiting.communicate(timeout=60)
    assert out == "exp-0004\n", errors


@pytest.mark.slow
def test_case_36_ten_seconds(tmp_path, holder):
    waiting = start(tmp_path, 1)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.communicate(timeout=10)
    holder.communicate("go on\n")
    assert waiting.communicate(timeout=60)[0] == "exp-0004\n"


def test_case_36_an_open_reader_stops_no_writer_and_keeps_its_view(tmp_path):
    with (
        full_ledger(tmp_path) as ledger,
        open_ledger(tmp_path, read_only=True) as reader,
        reader.snapshot(),
    ):
        before = reader.counts()
        life(ledger)
        assert ledger.counts() != before
        assert reader.counts() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_uses_connections_of_its_own(tmp_path):
    with open_ledger(tmp_path, clock=SystemClock()) as ledger:
        ledger.open_experiment(hypothesis="parent", parent=None, by="me")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                ledger.open_experiment(hypothesis="child", parent=None, by="me")
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert ledger.open_experiment(hypothesis="parent", parent=None, by="me").id == "exp-0003"
    assert verify(place(tmp_path), tmp_path / "anchors") == []


def test_verify_and_opening_beside_a_busy_writer_raise_no_false_alarm(tmp_path):
    full_ledger(tmp_path).close()
    worker = start(tmp_path, 10_000)
    try:
        assert worker.stdout is not None
        worker.stdout.readline()
        for _ in range(15):
            assert verify(place(tmp_path), tmp_path / "anchors") == []
            open_ledger(tmp_path, clock=SystemClock()).close()
    finally:
        worker.kill()
        worker.communicate()
