"""A small, ordinary project on disk: three tables, a plan, a state directory of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.project.context import Project, open_project
from harness.settings import create_config
from tests.blobs import PLAN, write_tables


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "my project"
    create_config(root, name="blobs", token="cafe")
    write_tables(root)
    (root / "plan.md").write_text(PLAN)
    (root / "train.py").write_text("print('train')\n")
    (root / "predict.py").write_text("print('predict')\n")
    return root


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path / "home")}


@pytest.fixture
def project(root: Path, environment: dict[str, str]) -> Iterator[Project]:
    with open_project(root, environment, clock=ManualClock()) as opened:
        yield opened
