"""A small project with an approved plan and one open experiment, and a way to train in it."""

import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs_support import GOOD, PLAN, Trainer, Unconfined

from harness.domain.grade import PERSON
from harness.ledger.project import Project, open_project
from harness.plans.approval import approve_plan
from harness.runs.train import TrainReport, train
from tests.blobs import make_root, own_environment


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path / "my project", plan=PLAN, train=GOOD)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return own_environment(tmp_path)


@pytest.fixture
def project(root: Path, environment: dict[str, str]) -> Iterator[Project]:
    with open_project(root, environment, caller=PERSON) as opened:
        approve_plan(opened, root / "plan.md", by="tester")
        opened.ledger.open_experiment(hypothesis="blobs differ", parent=None, by="tester")
        yield opened


@pytest.fixture
def run_training(project: Project, root: Path, monkeypatch: pytest.MonkeyPatch) -> Trainer:
    """Train exp-0001 with `code` as train.py, with `seeds` in place of the plan's; further
    arguments go to `train`."""

    def go(
        code: str = GOOD,
        argv: list[str] | None = None,
        seeds: list[int] | None = None,
        **more: object,
    ) -> TrainReport:
        if seeds is not None:
            monkeypatch.setattr(
                "harness.runs.train.plan_seeds", lambda approved, count=None: seeds
            )
        (root / "train.py").write_text(textwrap.dedent(code))
        inherited = {
            "PATH": os.environ["PATH"],
            "OMP_NUM_THREADS": "1",
            "ANTHROPIC_API_KEY": "not for training",
        }
        given = {"sandbox": Unconfined(), "inherited": inherited, "grace_s": 1.0, **more}
        return train(project, "exp-0001", argv, **given)  # type: ignore[arg-type]

    return go
