"""A project with code, a checkpoint and a vault, and requests to evaluate it with whatever
predict.py a test writes."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from harness.artifacts.code_snapshot import take_snapshot
from harness.artifacts.content import hash_path
from harness.clock import ManualClock
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import Split
from harness.evaluation.evaluate_run import EvaluationOutcome, EvaluationRequest, evaluate_run
from harness.evaluation.predict import PredictLimits
from harness.evaluation.scoring import FrozenScorer
from harness.evaluation.split_rows import TableFile
from harness.files import sha256_file
from harness.plans.tables import write_table

N = 40

PREDICT = """
import csv, os, sys
with open(os.environ["HARNESS_INPUTS"], newline="") as stream:
    rows = list(csv.DictReader(stream))
with open(os.environ["HARNESS_CHECKPOINT"]) as stream:
    cut = float(stream.read())
def guess(row):
    return "b" if float(row["x"]) >= cut else "a"
def write(pairs, header=("id", "prediction")):
    with open(os.environ["HARNESS_PREDICTIONS"], "w", newline="") as stream:
        csv.writer(stream).writerows([header, *pairs])
"""
HONEST = PREDICT + "write([(row['id'], guess(row)) for row in rows])\n"


class Workplace:
    """Rows with x of both signs: class b where x >= 0, but for every tenth row; so an honest
    predict gets 0.9."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "my project"
        self.state = folder / "state"
        self.vault = self.state / "vault"
        self.objects = self.vault / "objects"
        self.checkpoint = (
            self.project
            / ".harness"
            / "experiments"
            / "exp-0001"
            / "runs"
            / "run-01"
            / "model.txt"
        )
        self.checkpoint.parent.mkdir(parents=True)
        self.checkpoint.write_text("0.0")
        self.vault.mkdir(parents=True)
        x = np.array([(-1.0 if i % 2 else 1.0) * (i + 1) for i in range(N)])
        labels = ["a" if (value < 0) != (i % 10 == 3) else "b" for i, value in enumerate(x)]
        self.held_out = self.table(self.vault / "held_out.csv", x=x, y=labels)
        self.train = self.table(self.project / "data" / "train.csv", x=x[:3], y=["a", "a", "b"])

    def table(self, path: Path, **columns: object) -> TableFile:
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        n = len(next(iter(arrays.values())))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(path, {"row": np.array([f"row-{i}" for i in range(n)]), **arrays})
        return TableFile(path=path, sha256=sha256_file(path))

    def request(self, program: str = HONEST, **changes: object) -> EvaluationRequest:
        (self.project / "predict.py").write_text(program)
        request = EvaluationRequest(
            split=Split.VALIDATION,
            table=self.held_out,
            train=self.train,
            inputs=("x",),
            label="y",
            id_column="row",
            metric="accuracy",
            scorer=FrozenScorer(name="accuracy"),
            predict=("python", "predict.py"),
            interpreter=sys.executable,
            snapshot=take_snapshot(self.project, self.objects, exclude=["data/train.csv"]),
            objects=self.objects,
            checkpoint=self.checkpoint,
            checkpoint_hash=hash_path(self.checkpoint),
            root=self.project,
            work=self.state / "work",
            shuffle_seed=20240607,
            environment={**os.environ, "SECRET_TOKEN": "must not arrive"},
            limits=PredictLimits(predict_seconds=60, score_seconds=60),
        )
        return replace(request, **changes)

    def evaluate(self, program: str, sandbox: Sandbox, **changes: object) -> EvaluationOutcome:
        return evaluate_run(self.request(program, **changes), sandbox, ManualClock())


def codes(outcome: EvaluationOutcome) -> list[str]:
    return [finding.code for finding in outcome.findings]
