"""How many modules a reader of a journey opens: the rule of bench/journeys.py, and its figures."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
VERB = "harness.cli.train"
CALLS = [
    ["", "harness.cli.main"],
    ["harness.cli.main", "harness.cli.changing"],
    ["harness.cli.changing", "harness.audit.activity"],
    ["harness.cli.main", VERB],
    [VERB, "harness.runs.train"],
    [VERB, "harness.cli.answer"],
    ["harness.runs.train", "harness.artifacts.git"],
    ["harness.runs.train", "harness.artifacts.jsonl"],
    ["harness.artifacts.git", "harness.plans.parse"],
    ["harness.artifacts.git", "harness.runs.lock"],
    ["harness.runs.lock", "harness.files"],
    ["harness.files", "harness.sandbox.reach"],
]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("journeys")


def test_own_modules_count_and_each_other_room_is_one(bench: ModuleType) -> None:
    """artifacts is one, what only it calls is none, and what it calls of runs counts; the floor and
    the frame are free, what they call is not."""
    traced = bench.Traced(loaded=[], calls=CALLS)
    rooms = ["harness.artifacts", "harness.audit"]
    own = [VERB, "harness.runs.lock", "harness.runs.train"]
    assert traced.to_open("runs") == [*rooms, *own, "harness.sandbox"]


def test_the_former_rule_counts_each_module(bench: ModuleType) -> None:
    formerly = bench.Traced(loaded=[], calls=CALLS).by_module()
    assert {"harness.artifacts.git", "harness.artifacts.jsonl"} <= {*formerly}
    assert {"harness.plans.parse", "harness.cli.answer"} <= {*formerly}


def test_a_room_more_is_one_more_and_a_module_of_it_is_none(bench: ModuleType) -> None:
    def opened(*more: list[str]) -> int:
        return len(bench.Traced(loaded=[], calls=[*CALLS, *more]).to_open("runs"))

    assert opened(["harness.runs.train", "harness.artifacts.objects"]) == opened()
    assert opened(["harness.runs.train", "harness.detectors.watch"]) == opened() + 1
    assert opened(["harness.runs.train", "harness.runs.origin"]) == opened() + 1


def test_what_was_recorded_is_as_promised(bench: ModuleType) -> None:
    kept = (ROOT / "docs/evidence/journeys.json").read_text("utf-8")
    figures = json.loads(kept)["figures"]
    for name in bench.PROMISED:
        key = name.replace(" ", "_")
        assert 10 < figures[f"{key}_to_open"] <= bench.MOST == 30
        assert figures[f"{key}_to_open_by_module"] > figures[f"{key}_to_open"]


@pytest.mark.slow
@pytest.mark.parallel
@pytest.mark.timeout(1200)
def test_the_journeys_of_this_code_are_as_promised() -> None:
    words = [sys.executable, "bench/journeys.py"]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
