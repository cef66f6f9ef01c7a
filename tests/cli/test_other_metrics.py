"""A stranger's plan says AUROC, and predict writes a number a row: from plan check to the gate."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.cli.journey import PLAN, make_project

PREDICT = """\
import os
import numpy as np
centroids = np.load(os.environ["HARNESS_CHECKPOINT"])
table = np.load(os.environ["HARNESS_INPUTS"])
far = ((table["x"][:, None] - centroids[None]) ** 2).sum(-1)
np.savez(os.environ["HARNESS_PREDICTIONS"], id=table["id"], score=far[:, 0] - far[:, 1])
"""


def test_auroc_from_the_plan_to_the_gate(tmp_path: Path) -> None:
    journey = make_project(tmp_path / "project", tmp_path / "home")
    data = journey.root / "data"
    for name in ("train", "validation", "held_out"):
        table = dict(np.load(data / f"{name}.npz"))
        np.savez(data / f"{name}.npz", **(table | {"y": (table["y"] == 2).astype(int)}))
    plan = re.sub(r"(metric|scorer): accuracy", r"\1: AUROC", PLAN)
    (journey.root / "plan.md").write_text(plan.replace("seeds: 3", "seeds: 1"))
    (journey.root / "predict.py").write_text(PREDICT)
    assert journey.harness("init").exit_code == 0
    checked = journey.harness("plan", "check").stdout
    assert "`score` (a number, the higher the likelier '1'), or `p_1`" in checked
    assert "positive class '1', the greater label" in checked
    for words in (
        ("plan", "approve"),
        ("experiment", "new", "--hypothesis", "centroids rank"),
        ("train", "exp-0001"),
        ("evaluate", "exp-0001"),
    ):
        answer = journey.harness(*words)
        assert answer.exit_code == 0, answer.stdout + answer.stderr
    shown = journey.harness("experiment", "show", "exp-0001", "--json").document
    (evaluation,) = shown["evaluations"]
    assert evaluation["metric"] == "roc_auc"
    checkpoint = next(journey.root.rglob("centroids.npy"))
    far = np.load(data / "validation.npz")["x"][:, None] - np.load(checkpoint)[None]
    scores = (far**2).sum(-1)[:, 0] - (far**2).sum(-1)[:, 1]
    truth = np.load(data / "validation.npz")["y"]
    assert evaluation["value"] == pytest.approx(roc_auc_score(truth, scores))
    low, high = evaluation["interval"]
    assert low < evaluation["value"] < high
    verdict = journey.harness("gate", "check", "exp-0001", "--json").document
    assert "below_tier" not in [one["code"] for one in verdict["findings"]]
