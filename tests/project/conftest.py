"""A small, ordinary project on disk: three tables, a plan, a state directory of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from blobs import PLAN, table

from harness.artifacts.tables import write_table
from harness.clock import ManualClock
from harness.project.context import Project, open_project
from harness.settings import create_config


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "my project"
    create_config(root, name="blobs", token="cafe")
    for seed, (name, rows) in enumerate([("train", 60), ("validation", 30), ("held_out", 40)]):
        write_table(root / f"data/{name}.npz", table(rows, seed))
    (root / "plan.md").write_text(PLAN)
    (root / "train.py").write_text("print('train')\n")
    return root


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path / "home")}


@pytest.fixture
def project(root: Path, environment: dict[str, str]) -> Iterator[Project]:
    with open_project(root, environment, clock=ManualClock()) as opened:
        yield opened
