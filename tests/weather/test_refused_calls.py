"""A network disk without locks, and a quota that is spent, as the system calls say it: SQLite, too,
meets them there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.journey import Again, Answer, Journey
from tests.weather import refusing

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not refusing.WORKS, reason="a seccomp filter of Linux refuses")


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    steps = (
        ("init", "--hooks", "none"),
        ("plan", "approve"),
        ("experiment", "new", "--hypothesis", "centroids are enough"),
    )
    return Again(tmp_path_factory.mktemp("refused"), *steps).journey()


def told(journey: Journey, what: str, *words: str) -> Answer:
    program = str(Path(refusing.__file__))
    done = subprocess.run(
        [sys.executable, program, what, sys.executable, "-m", "harness", *words],
        cwd=journey.root,
        env=journey.environment(PYTHONPATH=str(ROOT)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("what", "code", "words"),
    [
        ("no-locks", "ledger_no_locks", "gives no locks"),
        ("no-quota", "ledger_disk_full", "your quota there is used up"),
    ],
)
def test_it_is_named_and_nothing_is_lost(
    journey: Journey, what: str, code: str, words: str
) -> None:
    before = journey.projections()
    answer = told(journey, what, "handoff", "--note", "Go on.", "--json")
    said = answer.document["error"]
    assert (answer.exit_code, said["code"]) == (3, code), answer
    assert words in said["message"]
    assert f"{journey.state}/ledger.db" in said["message"]
    assert "the disk " in said["message"]
    assert "XDG_STATE_HOME" in said["hint"]
    assert "Traceback" not in answer.stderr
    assert journey.projections() == before
    assert journey.harness("ledger", "verify").exit_code == 0


def test_a_spent_quota_still_lets_one_look(journey: Journey) -> None:
    answer = told(journey, "no-quota", "experiment", "list", "--json")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.document["experiments"][0]["experiment"] == "exp-0001"
