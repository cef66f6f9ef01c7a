"""Predict's time is counted and shown, noted when it is longer than the training's, and limited."""

import re
from pathlib import Path

import pytest

from tests.centroids import PREDICT
from tests.cli.journey import PLAN, Journey, make_project

SLOW = f"""import time
{PREDICT}
if len(table["id"]) > 100:  # all rows, not the part that is predicted again
    time.sleep(12)
"""


def trained(tmp_path: Path, plan: str) -> Journey:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    (journey.root / "plan.md").write_text(plan)
    (journey.root / "predict.py").write_text(SLOW)
    assert journey.harness("init").exit_code == 0
    approved = journey.harness("plan", "approve")
    assert approved.exit_code == 0, approved.stdout + approved.stderr
    words = ("experiment", "new", "--hypothesis", "blobs")
    opened = journey.harness(*words)
    assert opened.exit_code == 0, opened.stdout + opened.stderr
    assert journey.harness("train", "exp-0001").exit_code == 0
    return journey


@pytest.fixture
def one_seed() -> str:
    return PLAN.replace("seeds: 3", "seeds: 1")


def test_it_is_shown_beside_the_score_and_noted(tmp_path: Path, one_seed: str) -> None:
    journey = trained(tmp_path, one_seed)
    shown = journey.harness("evaluate", "exp-0001")
    assert shown.exit_code == 0, shown.stdout + shown.stderr
    assert re.search(r"\(predict took [\d.]+ s, training [\d.]+ s\)", shown.stdout)
    assert "work may be done in predict" in shown.stdout
    (row,) = journey.harness("evaluate", "exp-0001", "--json").document["evaluations"]
    assert row["predict_seconds"] >= 12.0
    assert 0 < row["training_seconds"] < row["predict_seconds"]
    document = journey.harness("experiment", "show", "exp-0001", "--json").document
    (evaluation,) = document["evaluations"]
    assert evaluation["predict_seconds"] == row["predict_seconds"]
    verdict = journey.harness("gate", "check", "exp-0001", "--json").document
    (note,) = [
        found for found in verdict["findings"] if found["code"] == "predict_longer_than_training"
    ]
    assert note["data"] == {
        "predict_s": row["predict_seconds"],
        "training_s": pytest.approx(row["training_seconds"], abs=0.06),
    }


def test_a_plan_that_sets_its_minutes_accepts_them(tmp_path: Path, one_seed: str) -> None:
    plan = one_seed.replace(
        "  predict: python predict.py", "  predict: python predict.py\n  predict_minutes: 1"
    )
    assert plan != one_seed
    journey = trained(tmp_path, plan)
    shown = journey.harness("evaluate", "exp-0001")
    assert shown.exit_code == 0
    assert re.search(r"\(predict took [\d.]+ s, training [\d.]+ s\)", shown.stdout)
    assert "work may be done in predict" not in shown.stdout


def test_at_its_limit_the_key_is_named(tmp_path: Path, one_seed: str) -> None:
    plan = one_seed.replace(
        "  predict: python predict.py", "  predict: python predict.py\n  predict_minutes: 0.02"
    )
    journey = trained(tmp_path, plan)
    shown = journey.harness("evaluate", "exp-0001")
    assert shown.exit_code == 1
    assert "ended at its limit of 1.2 s" in shown.stdout
    assert "oracle.predict_minutes" in shown.stdout
