"""A plan whose validation is hidden, from one table to a kept experiment, as people and agents type
it: what is exact about secret labels is told to a person's terminal and stands nowhere else."""

import csv
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.domain.statuses import SandboxKind
from harness.sandbox.select import choose
from tests.cli.journey import Answer, Journey
from tests.secret_numbers import long_ones, spelled

ROWS = 1030
"""So that no exact score is a short number: 103 hidden rows, and 206."""
KEPT, CHILD = "exp-0001", "exp-0002"
EXACT = ("experiment", "show", KEPT, "--exact", "--json")
ASKED = (
    ("status",),
    ("experiment", "list"),
    ("experiment", "show", "exp-0001"),
    ("experiment", "show", "exp-0002"),
    ("gate", "check", "exp-0001"),
    ("gate", "check", "exp-0001", "--gate", "validation"),
    ("decisions",),
    ("plan", "check"),
)
TRAIN = """\
import csv, json, os
from pathlib import Path

import numpy as np

from harness.run_logger import RunLogger

with RunLogger.from_environment() as log:
    with open(os.environ["HARNESS_TRAIN"], newline="") as stream:
        rows = list(csv.DictReader(stream))
    x = np.array([[float(row[name]) for name in "abc"] for row in rows])
    y = np.array([int(row["y"]) for row in rows])
    kept = np.random.default_rng(log.seed).choice(len(y), len(y) * 3 // 4, replace=False)
    log.start(total_epochs=1)
    centroids = np.stack([x[kept][y[kept] == label].mean(0) for label in range(3)])
    log.epoch(0, {"loss": float(((x - centroids[y]) ** 2).mean())})
    path = log.checkpoint_dir / "centroids.npy"
    np.save(path, centroids)
    log.checkpoint_saved(path, epoch=0, final=True)
    try:
        vault = sorted(path.name for path in Path(VAULT).rglob("*.csv") if path.read_bytes())
    except OSError:
        vault = []
    seen = {
        "columns": list(rows[0]),
        "files": sorted(str(path) for path in Path(".").rglob("*.csv")),
        "given": sorted(name for name in os.environ if name.startswith("HARNESS_")),
        "vault": vault,
    }
    (log.checkpoint_dir / "seen.json").write_text(json.dumps(seen))
"""
PREDICT = """\
import csv, os

import numpy as np

centroids = np.load(os.environ["HARNESS_CHECKPOINT"])
with open(os.environ["HARNESS_INPUTS"], newline="") as stream:
    rows = list(csv.DictReader(stream))
assert set(rows[0]) == {"id", "a", "b", "c"}, rows[0]
x = np.array([[float(row[name]) for name in "abc"] for row in rows])
nearest = ((x[:, None] - centroids[None]) ** 2).sum(-1).argmin(1)
with open(os.environ["HARNESS_PREDICTIONS"], "w", newline="") as stream:
    writer = csv.writer(stream)
    writer.writerow(["id", "prediction"])
    writer.writerows(zip([row["id"] for row in rows], nearest.tolist()))
"""


@dataclass
class Told:
    """A journey that was made, and everything that was said on the way."""

    journey: Journey
    answers: dict[str, str] = field(default_factory=dict)

    def __call__(self, *words: str, code: int = 0, **extra: str) -> Answer:
        answer = self.journey.harness(*words, **extra)
        said = answer.stdout + answer.stderr
        assert answer.exit_code == code, f"{words}: {said}"
        self.answers[f"{words} {sorted(extra)} {len(self.answers)}"] = said
        return answer

    def exact(self, experiment: str = KEPT) -> list[dict[str, Any]]:
        """As a person reads it on a terminal; it is no answer that an agent gets."""
        answer = self.journey.harness("experiment", "show", experiment, "--exact", "--json")
        assert answer.exit_code == 0, answer.stdout + answer.stderr
        scores: list[dict[str, Any]] = answer.document["exact"]
        return scores

    def files(self) -> Iterator[tuple[str, str]]:
        """Every file below the project."""
        for path in sorted(self.journey.root.rglob("*")):
            if path.is_file():
                yield str(path), path.read_bytes().decode("utf-8", "replace")


def one_table(root: Path) -> None:
    (root / "data").mkdir(parents=True)
    generator = np.random.default_rng(3)
    with (root / "data/all.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["a", "b", "c", "y"])
        for _ in range(ROWS):
            y, x = int(generator.integers(0, 3)), generator.normal(size=3)
            x[y] += 1.8
            writer.writerow([*x.round(3), y])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    base = tmp_path_factory.mktemp("hidden")
    journey = Journey(base / "project", base / "home")
    one_table(journey.root)
    journey.home.mkdir()
    told = Told(journey)
    told("init", "--data", "data/all.csv", "--label", "y")
    vault = f"VAULT = {str(journey.state / 'vault')!r}\n"
    (journey.root / "train.py").write_text(vault + TRAIN, "utf-8")
    (journey.root / "predict.py").write_text(PREDICT, "utf-8")
    told("plan", "check", "--json")
    told("plan", "approve", "--json")
    trained(told)
    score = told("evaluate", "exp-0001", "--json").document["score"]
    claim = f"accuracy={score}"
    told("experiment", "result", "exp-0001", "--claim", claim, "--summary", "As recomputed.")
    passed = told("gate", "check", "exp-0001", "--json").document
    assert (passed["gate"], passed["verdict"]) == ("validation", "PASS")
    told("evaluate", "exp-0001", "--split", "held-out", "--json")
    passed = told("gate", "check", "exp-0001", "--json").document
    assert (passed["gate"], passed["verdict"]) == ("held_out", "PASS")
    told("gate", "approve", "exp-0001", "--reason", "It says so.", "--json")
    fewer = TRAIN.replace("* 3 // 4", "// 16")
    (journey.root / "train.py").write_text(vault + fewer, "utf-8")
    trained(told, "--parent", KEPT)
    told("evaluate", CHILD, "--json")
    return told


def trained(told: Told, *more: str) -> None:
    words = ("experiment", "new", "--hypothesis", "centroids", *more, "--json")
    opened = told(*words).document
    Path(opened["folder"], "config.yaml").write_text("model: centroids\n", "utf-8")
    told("train", opened["experiment"], "--json")


def secrets(told: Told) -> set[float]:
    """Each number that a person is told on a terminal."""
    found: set[float | None] = set()
    for score in (*told.exact(), *told.exact(CHILD)):
        assert score["secret"] is True
        for one in (score, *score["runs"]):
            ends = one["interval"] or ()
            found |= {one.get("mean"), one.get("value"), one.get("baseline"), *ends}
    numbers = {value for value in found if value}
    assert len(numbers) > 8
    assert long_ones(numbers) == numbers
    return numbers


def test_no_exact_score_stands_in_the_project_or_in_an_answer(told: Told) -> None:
    wanted = spelled(secrets(told))
    assert wanted.search(json.dumps(told.exact()))
    agent = {"CLAUDECODE": "1"}
    for words in ASKED:
        told(*words, **agent)
        told(*words, "--json", **agent)
    told("experiment", "compare", CHILD, KEPT, "--json", code=1, **agent)
    told("experiment", "compare", KEPT, CHILD, code=1, **agent)
    told("watch", CHILD, "--once", **agent)
    told("gate", "check", CHILD, "--json", code=1, **agent)
    told("ledger", "export")
    for where, text in (*told.files(), *told.answers.items()):
        assert wanted.findall(text) == [], where


def test_no_secret_row_stands_in_the_project(told: Told) -> None:
    parts = ("held_out", "validation")
    tables = [
        path for part in parts for path in (told.journey.state / "vault" / part).glob("*.csv")
    ]
    assert len(tables) == 2
    # By chance no row has the three numbers of another one, whatever names it.
    rows = {line.partition(",")[2] for table in tables for line in table.read_text().split()[1:]}
    assert len(rows) == 309
    for where, text in told.files():
        lines = text.split()
        assert rows.isdisjoint(lines), where
        assert rows.isdisjoint(line.partition(",")[2] for line in lines), where


def test_training_is_given_no_secret_table(told: Told) -> None:
    runs = [json.loads(text) for where, text in told.files() if where.endswith("seen.json")]
    assert len(runs) == 6
    # The same look outside finds them all, so what it does not find inside is not there.
    vault = (told.journey.state / "vault").rglob("*.csv")
    outside = sorted(path.name for path in vault if path.read_bytes())
    assert len(outside) > 2
    inside = outside if choose(None, required=False).kind is SandboxKind.NONE else []
    for seen in runs:
        assert seen["files"] == ["data/all.train.csv"]
        assert "HARNESS_TRAIN" in seen["given"]
        assert not {"HARNESS_VALIDATION", "HARNESS_HELD_OUT"} & set(seen["given"])
        assert seen["vault"] == inside


def test_what_was_told_is_counted_and_shown(told: Told) -> None:
    plan = told("status", "--json").document["plan"]
    assert 0 < plan["bits_told"] <= plan["bits"] == 20
    assert f"{plan['bits_told']:.1f} of 20 bits" in told("status").stdout
    shares = [
        told("experiment", "show", name, "--json").document["told"] for name in (KEPT, CHILD)
    ]
    assert sum(one["experiment_bits"] for one in shares) == pytest.approx(
        plan["bits_told"], abs=0.1
    )
    line = f"told     {shares[0]['experiment_bits']:.1f} bits of secret labels by this experiment"
    assert line in told("experiment", "show", KEPT).stdout


def test_a_child_that_is_no_better_is_told_as_that(told: Told) -> None:
    child = told("experiment", "show", CHILD, "--json").document
    assert (child["score"], child["released"]["answer"]) == (None, "not better")
    assert child["told"]["experiment_bits"] < 1.5
    (exact,) = told.exact(CHILD)
    assert exact["mean"] < told.exact()[0]["mean"] + child["released"]["step"]


def test_on_hidden_labels_nothing_is_reproduced(told: Told) -> None:
    refused = told("reproduce", KEPT, "--json", code=2).document["error"]
    assert refused["code"] == "labels_hidden"
    helped = " ".join(told("reproduce", "--help").stdout.split())
    assert "Where the labels of validation are hidden" in helped


def test_what_is_sealed_is_drawn_as_that(told: Told) -> None:
    shown = told("experiment", "show", CHILD, "--json").document["evaluations"]
    assert {(row["value"], row["scored"]) for row in shown} == {(None, True)}
    table = told("experiment", "show", CHILD).stdout
    assert table.count("sealed") == len(shown) == 3
    assert "scored" not in table


def test_exact_scores_are_drawn_with_the_colours_of_a_terminal(told: Told) -> None:
    keyboard, screen = pty.openpty()
    try:
        subprocess.run(
            [sys.executable, "-m", "harness", *EXACT[:-1]],
            cwd=told.journey.root,
            env=told.journey.environment(TERM="xterm-256color"),
            stdin=screen,
            stdout=screen,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=True,
        )
        text = os.read(keyboard, 1 << 16).decode()
    finally:
        os.close(keyboard)
        os.close(screen)
    assert "validation, mean 0." in text
    assert "\x1b[1m" in text


def test_exact_scores_are_for_a_persons_terminal(told: Told) -> None:
    agent = told(*EXACT, code=2, CLAUDECODE="1")
    assert agent.document["error"]["code"] == "human_verb"
    piped = subprocess.run(
        [sys.executable, "-m", "harness", *EXACT],
        cwd=told.journey.root,
        env=told.journey.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (piped.returncode, json.loads(piped.stdout)["error"]["code"]) == (2, "no_terminal")
    assert [score["split"] for score in told.exact()] == ["validation", "held_out"]
