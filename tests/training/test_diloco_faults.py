"""Replicas that die, hang or fail, and a lighthouse that is killed: the run ends, heals, and its
replicas are equal."""

import json
import math
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.artifacts.metrics_file import rows_in
from harness.detectors.watch import RunWatch
from tests.training.replica_runs import Replicas, end_all

KILLS = 20
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    yield
    end_all()


def assert_equal(run: Replicas) -> None:
    assert run.digest(0) == run.digest(1)
    last = {at: run.kept(at)[-1] for at in (0, 1)}
    assert last[0]["after"] == last[1]["after"]


def test_a_replica_that_dies_in_a_round_heals_and_its_rows_come_again(tmp_path: Path) -> None:
    case = {"open": True, "die": {"1": 2}, "pause": 0.05}
    run = Replicas(tmp_path, case, {"sync_every": 3}).start()
    run.until(lambda: "healing" in run.told(1) and run.told(1)[-1] == "training")
    (tmp_path / "rounds").write_text(str(run.standing(0)["round"] + 3))
    assert run.wait() == 0, run.err
    assert_equal(run)
    told = run.told(1)
    assert told.count("stopped") == 1
    assert told.index("stopped") < told.index("healing") < len(told) - 1
    assert "healing" not in run.told(0)
    assert "replica 1, round 2: stopped: signal 9" in run.err
    assert "restart 1 of 3" in run.err

    failed = [each for each in run.kept(0) if not each["counts"]]
    assert [each["round"] for each in failed] == [2]  # it had begun when the other died
    assert failed[0]["after"] == failed[0]["global"]
    (healed,) = (each for each in run.kept(1) if each["healed"])
    rows = {row["epoch"]: row["metrics"] for row in run.rows() if row["event"] == "epoch"}
    at = healed["round"] - 1
    assert rows[at]["participants"] == 1  # whose work counts
    assert rows[at]["replica-1/healed"] == 1
    assert "replica-1/loss" not in rows[at]
    assert {row["participants"] for row in rows.values()} == {1, 2}
    times = json.loads((tmp_path / "run" / "samples.json").read_text())["times"]
    assert max(times) - min(times) <= 1


def test_a_healed_replica_syncs_the_same_fragment_as_the_others(tmp_path: Path) -> None:
    """Case 54: the order of fragments is that of the rounds that count, not of own steps."""
    case = {"open": True, "die": {"1": 3}, "pause": 0.05}
    run = Replicas(tmp_path, case, {"sync_every": 4, "fragments": 2}).start()
    run.until(lambda: "healing" in run.told(1) and run.told(1)[-1] == "training")
    (tmp_path / "rounds").write_text(str(run.standing(0)["round"] + 4))
    assert run.wait() == 0, run.err
    one, two = ({each["round"]: each for each in run.kept(at) if each["counts"]} for at in (0, 1))
    healed = min(number for number, each in two.items() if each["healed"])
    together = [number for number in two if number >= healed]
    assert len(together) > 3
    for number in together:
        for what in ("names", "global", "after"):
            assert one[number][what] == two[number][what]
    assert one[healed]["names"] != one[healed + 1]["names"]


def test_kills_at_seeded_moments_and_a_killed_lighthouse(tmp_path: Path) -> None:
    """One run through all of them: each replica dies many times, the lighthouse twice."""
    moments = random.Random(11)
    case = {"open": True, "pause": 0.02}
    said = {"sync_every": 3, "restarts": KILLS}
    run = Replicas(tmp_path, case, said).start()

    def both_train() -> bool:
        at = [run.standing(one) for one in (0, 1)]
        return all(each["round"] > before and psutil.pid_exists(each["pid"]) for each in at)

    before = 0
    for kill in range(KILLS):
        run.until(both_train)
        if kill in (KILLS // 3, 2 * KILLS // 3):
            run.lighthouse().kill()
        time.sleep(moments.uniform(0, 0.3))
        run.kill(moments.randrange(2))
        # What the dead one told last is not beyond it.
        before = max(run.standing(one)["round"] for one in (0, 1))
    run.until(both_train)
    (tmp_path / "rounds").write_text(str(max(run.standing(one)["round"] for one in (0, 1)) + 8))
    assert run.wait() == 0, run.err
    assert_equal(run)
    assert run.err.count(": stopped: signal 9") == KILLS
    assert run.err.count("the lighthouse ended") == 2
    times = json.loads((tmp_path / "run" / "samples.json").read_text())["times"]
    assert max(times) - min(times) <= 1


def test_a_cold_resume_is_the_same_to_the_last_bit(tmp_path: Path) -> None:
    said = {"sync_every": 3, "fragments": 1}
    whole = Replicas(tmp_path / "whole", {"rounds": 8}, said).start()
    assert whole.wait() == 0, whole.err
    cut = Replicas(tmp_path / "cut", {"rounds": 8, "pause": 0.1}, said).start()
    cut.until(lambda: cut.standing(0)["round"] >= 3)
    for process in cut.processes():
        process.kill()
    cut.wait()
    assert not (cut.of(0) / "digest").exists()
    assert cut.start().wait() == 0, cut.err
    assert cut.digest(0) == cut.digest(1) == whole.digest(0)
    events = [row["event"] for row in cut.rows()]
    assert events.count("attempt") == 1
    assert events[-1] == "end"
    folders = (each / "run" / "samples.json" for each in (tmp_path / "whole", tmp_path / "cut"))
    assert len({each.read_text() for each in folders}) == 1


def test_a_heartbeat_is_no_progress(tmp_path: Path) -> None:
    case = {"open": True, "hang": {"1": 1}, "pause": 0.05}
    run = Replicas(tmp_path, case, {"sync_every": 2, "stalled_s": 45.0}).start()
    run.until(lambda: "healing" in run.told(1) and run.told(1)[-1] == "training")
    (tmp_path / "rounds").write_text(str(run.standing(0)["round"] + 3))
    assert run.wait() == 0, run.err
    told = run.told(1)
    assert told.index("stalled") < told.index("stopped") < told.index("healing")
    assert "stalled" not in run.told(0)  # it went on alone
    assert "stopped: no step for 45 s" in run.err
    assert_equal(run)


def test_of_three_replicas_two_go_on_when_one_dies(tmp_path: Path) -> None:
    case = {"open": True, "die": {"2": 2}, "pause": 0.05}
    run = Replicas(tmp_path, case, {"sync_every": 3}, replicas=3).start()
    # Of those who were in the exchange one may be left behind, and heal in another's stead.
    run.until(
        lambda: (
            "stopped" in run.told(2) and min(run.standing(one)["round"] for one in range(3)) > 5
        )
    )
    (tmp_path / "rounds").write_text(str(run.standing(0)["round"] + 3))
    assert run.wait() == 0, run.err
    assert run.digest(0) == run.digest(1) == run.digest(2)
    rows = {row["epoch"]: row["metrics"] for row in run.rows() if row["event"] == "epoch"}
    assert {row["participants"] for row in rows.values()} <= {1, 2, 3}
    assert rows[len(rows) - 1]["participants"] == 3
    assert list(rows) == list(range(len(rows)))  # no round was left out
    times = json.loads((tmp_path / "run" / "samples.json").read_text())["times"]
    assert max(times) - min(times) <= 1


def test_a_replica_with_nan_is_named_and_the_others_go_on_without_it(tmp_path: Path) -> None:
    run = Replicas(tmp_path, {"rounds": 8, "nan": 1}, {"sync_every": 3}).start()
    assert run.wait() == 0, run.err
    watch = RunWatch()
    alarms = [
        alarm for row in rows_in(run.folder / "run/metrics.jsonl") for alarm in watch.feed(row)
    ]
    named = {alarm.metric for alarm in alarms if alarm.code == "non_finite"}
    assert named == {"replica-1/loss", "replica-1/drift"}
    fatal = watch.fatal()
    assert fatal is not None
    assert fatal.metric.startswith("replica-1/")
    rows = [row["metrics"] for row in run.rows() if row["event"] == "epoch"]
    assert [row["participants"] for row in rows] == [2, 2, 1, 1, 1, 1, 1, 1]
    assert all(math.isfinite(row["loss"]) for row in rows)
    assert_equal(run)


def test_too_few_replicas_wait_and_no_round_is_counted(tmp_path: Path) -> None:
    case = {"rounds": 50, "pause": 0.05}
    said = {"sync_every": 2, "minimum_replicas": 2, "restarts": 1, "waiting_s": 200.0}
    run = Replicas(tmp_path, case, said).start()
    run.until(lambda: run.standing(1)["round"] >= 2)
    os.kill(run.standing(1)["pid"], signal.SIGSTOP)
    run.until(lambda: run.told(0)[-1] == "waiting for quorum")
    time.sleep(3)
    at = run.standing(0)
    assert at["state"] == "waiting for quorum"
    time.sleep(3)
    assert run.standing(0)["round"] == at["round"]
    os.kill(run.standing(1)["pid"], signal.SIGCONT)
    assert run.wait() == 0, run.err
    assert_equal(run)


def test_a_program_that_fails_at_once_says_its_own_error_and_is_not_tried_again(
    tmp_path: Path,
) -> None:
    words = "import sys; sys.exit('no such table')"
    run = Replicas(tmp_path, command=("python", "-c", words)).start()
    assert run.wait() == 1
    assert run.err.splitlines()[-1] == "no such table"
    assert "it failed before its first step" in run.err
    assert "restart 1" not in run.err
    status = json.loads((tmp_path / "run" / "training_status.json").read_text())
    assert status["status"] == "failed"


def test_under_the_trainer_of_transformers_a_replica_heals_and_ends_with_the_others(
    tmp_path: Path,
) -> None:
    program = Path(__file__).with_name("diloco_trainer.py")
    run = Replicas(tmp_path, said={"sync_every": 4}, command=("python", str(program))).start()
    assert run.wait() == 0, run.err
    assert run.digest(0) == run.digest(1)
    assert "healing" in run.told(1)
    rows = [row for row in run.rows() if row["event"] == "epoch"]
    last = {}
    for row in rows:
        last |= row["metrics"] if row["epoch"] == 159 else {}
    assert last["participants"] == 2
    assert last["global/loss"] < 1.0 < rows[0]["metrics"]["global/loss"]
    own = [last["replica-0/loss"], last["replica-1/loss"]]
    assert min(own) <= last["global/loss"] <= max(own)
