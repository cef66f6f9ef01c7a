"""A clock that was ahead once, or is set while something runs, and files of the future."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness.process import identity, is_same_alive
from tests.cli.journey import Again, Answer, Journey

ROOT = Path(__file__).parents[2]
YEAR_S = 365 * 86_400
SHIFTED = """
import sys
from datetime import UTC, datetime, timedelta
from harness.clock import SystemClock
shift = timedelta(seconds=float(sys.argv[1]))
SystemClock.now = lambda self: datetime.now(UTC) + shift
from harness.cli.main import main
main(sys.argv[2:])
"""


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Again:
    steps = (("init", "--hooks", "none"), ("plan", "approve"))
    return Again(tmp_path_factory.mktemp("clocks"), *steps)


def shifted(journey: Journey, seconds: float, *words: str) -> Answer:
    done = subprocess.run(
        [sys.executable, "-c", SHIFTED, str(seconds), *words],
        cwd=journey.root,
        env=journey.environment(PYTHONPATH=str(ROOT)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def judged(journey: Journey) -> list[str]:
    """Trained, scored and asked by the clock as it is now: the codes of the gate's findings."""
    for words in (
        ("train", "exp-0001"),
        ("evaluate", "exp-0001"),
        ("experiment", "result", "exp-0001", "--summary", "It learned."),
    ):
        answer = journey.harness(*words)
        assert answer.exit_code == 0, (words, answer)
    answer = journey.harness("gate", "check", "exp-0001", "--json")
    assert (answer.exit_code, answer.document["verdict"]) == (0, "PASS"), answer.stdout
    for words in (("audit",), ("watch", "exp-0001", "--once"), ("report",), ("ledger", "verify")):
        assert journey.harness(*words).exit_code == 0, words
    return [found["code"] for found in answer.document["findings"]]


def test_a_clock_that_was_a_year_ahead_and_is_set_back_spoils_nothing(again: Again) -> None:
    journey = again.journey()
    opened = shifted(journey, YEAR_S, "experiment", "new", "--hypothesis", "x", "--json")
    assert opened.exit_code == 0, opened
    assert "clock_set" in judged(journey)


def test_a_clock_that_was_ten_years_behind_spoils_nothing(again: Again) -> None:
    journey = again.journey()
    for words in (("experiment", "new", "--hypothesis", "x"), ("status",), ("report",)):
        answer = shifted(journey, -10 * YEAR_S, *words)
        assert (answer.exit_code, answer.stderr) == (0, ""), answer
    assert "clock_set" not in judged(journey)


def test_files_of_the_future_and_of_1970_are_files(again: Again) -> None:
    journey = again.journey()
    opened = journey.harness("experiment", "new", "--hypothesis", "x")
    assert opened.exit_code == 0, opened
    for path in [*journey.root.rglob("*"), *journey.home.rglob("*")]:
        if path.is_file():
            os.utime(path, (time.time() + 10 * YEAR_S,) * 2)
    judged(journey)
    for path in [*journey.root.rglob("*"), *journey.home.rglob("*")]:
        if path.is_file() and "checkpoints" not in path.parts:
            os.utime(path, (0, 0))
    answer = journey.harness("status", "--json")
    assert answer.exit_code == 0
    assert json.loads(answer.stdout)["counts"]["experiments"] == {"judged": 1}


def test_a_process_is_the_same_whatever_the_clock_is_set_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Linux counts starts from the boot, and the time of the boot moves with the clock."""
    known, booted = identity(), psutil.boot_time()
    for moved in (3600.0, -YEAR_S):
        monkeypatch.setattr("psutil._psplatform.boot_time", lambda moved=moved: booted + moved)
        assert is_same_alive(known)
        assert not is_same_alive({**known, "started": known["started"] - 10})
