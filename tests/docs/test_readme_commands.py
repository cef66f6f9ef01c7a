"""The README's commands, run as they stand, by a new user with one table in an empty folder."""

import json
import random
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.journey import Answer, Journey
from tests.warm import run_warm

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
ROWS, COLUMNS = 600, ("age", "visits", "spent")


def commands() -> list[list[str]]:
    """The lines that begin with `harness` below "Your repository in five"."""
    block = README.split("## Your repository in five", 1)[1].split("```")[1]
    return [shlex.split(line, comments=True) for line in re.findall("^harness .*", block, re.M)]


def table(rows: int, seed: int) -> str:
    """A csv file: `churned` follows two of the columns, with noise."""
    draw = random.Random(seed)
    lines = [",".join((*COLUMNS, "churned"))]
    for _ in range(rows):
        values = [draw.gauss(0, 1) for _ in COLUMNS]
        churned = int(values[0] - values[1] + draw.gauss(0, 0.3) > 0)
        lines.append(",".join([*(f"{value:.4f}" for value in values), str(churned)]))
    return "\n".join(lines) + "\n"


def typed(journey: Journey, *words: str) -> Answer:
    """A training of scikit-learn and each of its evaluations start Python anew."""
    done = run_warm(words, cwd=journey.root, env=journey.environment(), timeout=600)
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    base = tmp_path_factory.mktemp("newcomer")
    (base / "home").mkdir()
    (base / "project/data").mkdir(parents=True)
    (base / "project/data/all.csv").write_text(table(ROWS, seed=1), "utf-8")
    return Journey(base / "project", base / "home")


def test_five_commands_lead_from_a_table_to_a_kept_result(journey: Journey) -> None:
    five = commands()
    assert [words[1] for words in five] == ["init", "plan", "try", "keep", "report"]
    for words in five:
        answer = typed(journey, *words[1:])
        assert answer.exit_code == 0, (words, answer.stdout, answer.stderr)
    assert "exp-0001" in answer.stdout
    assert "KEEP" in answer.stdout
    listed = json.loads(journey.harness("experiment", "list", "--json").stdout)
    (row,) = listed["experiments"]
    assert row["status"] == "kept"


def test_each_further_experiment_is_one_command(journey: Journey) -> None:
    """Judged, and compared with what was kept."""
    answer = typed(journey, "try", "the same again", "--json")
    assert answer.exit_code in (0, 1), answer.stderr
    assert answer.document["verdict"] in ("PASS", "FAIL", "INCONCLUSIVE")
    assert answer.document["experiment"] == "exp-0002"
