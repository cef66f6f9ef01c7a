"""Which Python trains and predicts: `interpreter` of config.toml, also when it is relative, missing
or bare."""

import sys
from pathlib import Path

import pytest

from harness.settings import CONFIG
from tests.cli.journey import Journey, make_project


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    made = make_project(tmp_path / "project", tmp_path / "home")
    assert made.harness("init").exit_code == 0
    return made


def name_interpreter(journey: Journey, value: str) -> None:
    config = journey.root / CONFIG
    config.write_text(config.read_text("utf-8") + f'interpreter = "{value}"\n', "utf-8")


def program(path: Path) -> Path:
    """A Python of the project's own: it hands over to the one that runs this test."""
    path.parent.mkdir(parents=True)
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', "utf-8")
    path.chmod(0o755)
    return path


def test_a_relative_interpreter_trains_and_predicts(journey: Journey) -> None:
    program(journey.root / ".venv" / "bin" / "python")
    (journey.root / ".gitignore").write_text("data/\n.venv/\n", "utf-8")
    name_interpreter(journey, ".venv/bin/python")
    approved = journey.harness("plan", "approve")
    assert approved.exit_code == 0, approved.stderr
    journey.harness("experiment", "new", "--hypothesis", "centroids")
    trained = journey.harness("train", "exp-0001", "--json", cwd=journey.root / "data")
    assert trained.exit_code == 0, trained.stdout
    evaluated = journey.harness("evaluate", "exp-0001", "--json", cwd=journey.root / "data")
    assert evaluated.exit_code == 0, evaluated.stdout
    assert evaluated.document["score"] > 0.5


def test_a_missing_interpreter_is_said_before_anything_is_frozen(journey: Journey) -> None:
    name_interpreter(journey, ".venv/bin/python")
    checked = journey.harness("plan", "check", "--json")
    assert checked.exit_code == 2
    (problem,) = checked.document["problems"]
    assert problem["code"] == "interpreter_missing"
    assert str(journey.root / ".venv/bin/python") in problem["message"]
    assert CONFIG in problem["hint"]
    refused = journey.harness("plan", "approve", "--json")
    assert (refused.exit_code, refused.document["error"]["code"]) == (2, "interpreter_missing")
    assert (journey.root / "data" / "held_out.npz").exists()


def test_an_interpreter_that_went_away_is_exit_two(journey: Journey) -> None:
    python = program(journey.root / ".venv" / "bin" / "python")
    name_interpreter(journey, ".venv/bin/python")
    assert journey.harness("plan", "approve").exit_code == 0
    journey.harness("experiment", "new", "--hypothesis", "centroids")
    python.unlink()
    answer = journey.harness("train", "exp-0001", "--json")
    assert (answer.exit_code, answer.document["error"]["code"]) == (2, "interpreter_missing")
