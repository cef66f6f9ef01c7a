"""`harness watch` beside a training that goes on, and after it."""

import json
import subprocess
import sys

import pytest

from tests.cli.journey import TRAIN, Again, Journey

SLOW = TRAIN.replace(
    "    log.epoch(0, {", "    import time\n    time.sleep(1.0)\n    log.epoch(0, {"
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Again:
    new = ("experiment", "new", "--hypothesis", "centroids")
    return Again(tmp_path_factory.mktemp("again"), ("init",), ("plan", "approve"), new)


@pytest.fixture
def journey(opened: Again) -> Journey:
    made = opened.journey()
    (made.root / "train.py").write_text(SLOW, "utf-8")
    return made


def test_rows_come_while_it_trains_and_watching_ends_with_it(journey: Journey) -> None:
    nothing = journey.harness("watch", "--json")
    assert (nothing.exit_code, nothing.document["error"]["code"]) == (2, "nothing_runs")
    command = [sys.executable, "-m", "harness", "train", "exp-0001"]
    with subprocess.Popen(
        command, cwd=journey.root, env=journey.environment(), stderr=subprocess.PIPE
    ) as training:
        assert training.stderr is not None
        training.stderr.readline()  # the first run is registered
        with watcher(journey) as quiet:
            watching = journey.harness("watch", "exp-0001")
            training.communicate(timeout=120)
            said, _ = quiet.communicate(timeout=60)
    assert training.returncode == 0
    assert quiet.returncode == 0
    assert "  epoch 0  loss " not in said
    assert "exp-0001: ended" in said
    assert watching.exit_code == 0, watching.stderr
    lines = [line for line in watching.stdout.splitlines() if "  epoch 0  loss " in line]
    assert [line.split()[0] for line in lines] == ["run-01", "run-02", "run-03"]
    assert all(line.endswith(" s") for line in lines)
    assert "exp-0001: ended (logged, not recomputed)" in watching.stdout

    once = journey.harness("watch", "--once", "--json")
    assert once.exit_code == 0
    assert (once.document["experiment"], once.document["state"]) == ("exp-0001", "ended")
    assert [run["status"] for run in once.document["runs"]] == ["completed"] * 3

    # What each used is told wherever a person looks, with peak and mean.
    for run in once.document["runs"]:
        assert {"cpu", "memory_bytes", "disk_bytes"} <= set(run["resources"])
        assert run["resources"]["memory_bytes"]["peak"] > 1_000_000
    assert watching.stdout.count("  used  CPU ") == 3
    assert " cores, mean " in journey.harness("watch", "--once").stdout
    shown = journey.harness("experiment", "show", "exp-0001")
    assert "used of the machine (peak, mean)" in shown.stdout
    assert shown.stdout.count(" cores, mean ") == 3
    assert "- exp-0001 used at most: CPU " in journey.harness("report").stdout


def watcher(journey: Journey) -> "subprocess.Popen[str]":
    """`harness watch --until-alarm`, as a session starts it beside the training."""
    command = [sys.executable, "-m", "harness", "watch", "exp-0001", "--until-alarm"]
    return subprocess.Popen(
        command,
        cwd=journey.root,
        env=journey.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_until_alarm_waits_for_the_training_and_ends_at_its_first_alarm(journey: Journey) -> None:
    """Started before the training, as a session does that starts both in the background."""
    lost = (
        "import time\n    for epoch in range(4):\n"
        '        log.epoch(epoch, {"loss": float("nan")})\n        time.sleep(0.5)\n'
        "    time.sleep(60)\n"
    )
    head, call, _ = SLOW.partition("    log.epoch(0, {")
    (journey.root / "train.py").write_text(f"{head}    {lost}" if call else "", "utf-8")
    with watcher(journey) as watching:
        trained = journey.harness("train", "exp-0001")
        said, errors = watching.communicate(timeout=60)
    assert trained.exit_code == 1
    assert watching.returncode == 0, said + errors
    assert "run-01  alarm  " in said
    assert " non_finite " in said, "at its second row, or the third, where it is fatal"
    assert "next: let the agent training-checker explain the alarm of exp-0001" in said
    snapshot = json.loads((journey.root / ".harness/policy.json").read_text("utf-8"))
    assert snapshot["standing"]["next"] == "explain the alarm"


def test_until_alarm_follows_no_log(journey: Journey) -> None:
    answer = journey.harness("watch", "run.log", "--until-alarm")
    assert answer.exit_code == 2
    assert "follows one experiment, no log" in answer.stderr
    answer = journey.harness("watch", "run.log", "--until-alarm", "--json")
    assert (answer.exit_code, answer.document["error"]["code"]) == (2, "usage")


def test_a_failed_run_is_exit_one(journey: Journey) -> None:
    (journey.root / "train.py").write_text("raise MemoryError\n", "utf-8")
    assert journey.harness("train", "exp-0001").exit_code == 1
    assert journey.harness("watch", "exp-0001", "--once").exit_code == 0
    answer = journey.harness("watch", "exp-0001", "--json")
    assert (answer.exit_code, answer.document["runs"][0]["status"]) == (1, "failed")


def test_a_training_that_was_just_started_is_waited_for(journey: Journey) -> None:
    """`harness watch` at once, before the first run is registered."""
    command = [sys.executable, "-m", "harness", "train"]
    environment = journey.environment()
    with subprocess.Popen(
        command, cwd=journey.root, env=environment, stderr=subprocess.PIPE, text=True
    ) as training:
        once = journey.harness("watch", "--once", "--wait", "--json", "exp-0001")
        _, told = training.communicate(timeout=120)
    assert training.returncode == 0
    assert [run["run"] for run in once.document["runs"]] == ["run-01"]
    assert once.document["state"] == "running"
    assert "exp-0001 is the open experiment" in told
    assert "config.yaml: written from the command" in told
    # The last row comes less than a second after the one before.
    assert told.count(" epoch 0 loss ") == 3
    table = journey.harness("watch", "--once", "exp-0001").stdout
    assert table.partition("reason")[2].count(" 1 of 1 ") == 3


CUT = """\
import os
import signal

import numpy as np

from harness.run_logger import RunLogger

with RunLogger.from_environment() as log:
    kept = log.checkpoint_dir / "done"
    first = int(kept.read_text()) if kept.exists() else 0
    RESTORED
    log.start(total_epochs=8, resumed_at=first or None)
    for epoch in range(first, 8):
        log.epoch(epoch, {"loss": 1 / (epoch + 1)})
        kept.write_text(str(epoch + 1))
        if epoch == 4 and os.environ["HARNESS_ATTEMPT"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
    path = log.checkpoint_dir / "centroids.npy"
    np.save(path, np.zeros((2, 2)))
    log.checkpoint_saved(path, epoch=7, final=True)
"""


@pytest.mark.parametrize(
    ("restored", "row", "why"),
    [
        ("log.resumed()", [True], None),
        (
            "log.resumed(['optimizer']); first += 2",
            [False],
            "optimizer not restored; its epochs jump from 4 to 7",
        ),
    ],
)
def test_a_resume_that_is_not_exact_is_told_by_the_row_the_gate_and_watch(
    journey: Journey, restored: str, row: list[bool], why: str | None
) -> None:
    program = CUT.replace("RESTORED", f"if first:\n        {restored}")
    (journey.root / "train.py").write_text(program, "utf-8")
    plan = journey.root / "plan.md"
    plan.write_text(plan.read_text().replace("seeds: 3", "seeds: 1"))
    assert journey.approve_changes().exit_code == 0
    assert journey.harness("train", "exp-0001").exit_code == 1
    assert journey.harness("train", "exp-0001", "--resume").exit_code == 0

    folder = journey.root / ".harness/experiments/exp-0001/runs/run-01"
    rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    assert [one["exact"] for one in rows if one["event"] == "resume"] == row
    verdict = journey.harness("gate", "check", "exp-0001", "--json").document
    found = [one["message"] for one in verdict["findings"] if one["code"] == "resume_not_exact"]
    assert found == (
        [] if why is None else [f"exp-0001/run-01 went on after a stop, but not exactly: {why}."]
    )
    notes = [] if why is None else [f"the resume was not exact: {why}"]
    (run,) = journey.harness("watch", "exp-0001", "--once", "--json").document["runs"]
    assert run["notes"] == notes
    lines = journey.harness("watch", "exp-0001", "--once").stdout.splitlines()
    assert [line for line in lines if "  note  " in line] == [
        f"run-01  note  {note}" for note in notes
    ]
