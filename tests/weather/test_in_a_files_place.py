"""A folder or a pipe where a file is expected: a sentence that names it, no wait, exit 2 or the
gate's no; what the harness writes itself it puts in order."""

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.journey import Again, Journey

STEPS = (
    ("init", "--hooks", "none"),
    ("plan", "approve"),
    ("experiment", "new", "--hypothesis", "centroids are enough"),
)
EXPERIMENT = ".harness/experiments/exp-0001"
CASES = {
    ("plan.md", "plan check"): (2, "plan.md"),
    (".harness/config.toml", "status"): (2, "config.toml is not a regular file"),
    ("data/train.npz", "plan check"): (2, "train.npz is not a regular file"),
    (f"{EXPERIMENT}/config.yaml", "train exp-0001"): (2, "config.yaml is not a regular file"),
    (f"{EXPERIMENT}/result.md", "gate check exp-0001"): (1, "result.md is not a regular file"),
    ("facts", "handoff --note x"): (2, ".jsonl"),
    ("facts", "ledger verify"): (2, ".jsonl"),
    ("ledger.db", "handoff --note x"): (3, "ledger.db"),
    ("anchor", "handoff --note x"): (3, ".json"),
    (".harness/policy.json", "handoff --note x"): (0, "wrote"),
    (".harness/memory/STATE.md", "handoff --note x"): (0, "wrote"),
}


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Again:
    return Again(tmp_path_factory.mktemp("places"), *STEPS)


def place(journey: Journey, name: str) -> Path:
    if name == "facts":
        return next((journey.root / ".harness/memory/facts").glob("*.jsonl"))
    if name == "anchor":
        return next((journey.state / "anchors").glob("*.json"))
    return journey.state / name if name == "ledger.db" else journey.root / name


@pytest.mark.parametrize("form", ["folder", "pipe"])
@pytest.mark.parametrize(("name", "words"), CASES)
def test_it_is_named(again: Again, name: str, words: str, form: str) -> None:
    journey = again.journey()
    path = place(journey, name)
    aside = path.with_name("aside")
    if path.exists():
        path.rename(aside)
    path.mkdir() if form == "folder" else os.mkfifo(path)
    answer = journey.harness(*words.split())
    code, said = CASES[name, words]
    assert answer.exit_code == code, answer
    told = answer.stdout + answer.stderr
    assert said in told or (form, name) == ("folder", "plan.md"), told
    assert "Traceback" not in told
    if code == 2 or code == 3:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        if aside.exists():
            aside.rename(path)
        assert journey.harness("ledger", "verify").exit_code == 0
