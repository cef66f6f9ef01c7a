"""No width, no terminal, no room for what is said: the work is done and its exit code is told."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.journey import Again, Journey

STEPS = (
    ("init", "--hooks", "none"),
    ("plan", "approve"),
    ("experiment", "new", "--hypothesis", "centroids are enough"),
)
SHOWN = (
    "status",
    "report",
    "experiment list",
    "experiment show exp-0001",
    "watch exp-0001 --once",
)


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Again:
    return Again(tmp_path_factory.mktemp("outputs"), *STEPS)


def test_a_terminal_without_a_width_is_one_of_eighty_columns_or_more(again: Again) -> None:
    journey = again.journey()
    for line in SHOWN:
        usual = journey.harness(*line.split(), COLUMNS="80")
        for width in ("0", "-5", "x", ""):
            answer = journey.harness(*line.split(), COLUMNS=width, LINES=width)
            assert (answer.exit_code, answer.stderr) == (0, ""), (line, width, answer)
            assert answer.stdout.split() == usual.stdout.split(), (line, width)


def trained(journey: Journey, ends: str) -> subprocess.CompletedProcess[str]:
    line = f"{sys.executable} -m harness train exp-0001 {ends}"
    return subprocess.run(
        ["bash", "-c", line],
        cwd=journey.root,
        env=journey.environment(PYTHONPATH=str(Path(__file__).parents[2])),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.parametrize("ends", ["> /dev/full 2> /dev/full", ">&- 2>&-", "| true"])
def test_a_training_whose_output_nobody_takes_is_trained(again: Again, ends: str) -> None:
    journey = again.journey()
    done = trained(journey, ends)
    assert done.returncode == 0, done
    shown = journey.harness("experiment", "show", "exp-0001", "--json").document
    assert [run["status"] for run in shown["runs"]] == ["completed"] * 3, shown
    assert journey.harness("ledger", "verify").exit_code == 0
