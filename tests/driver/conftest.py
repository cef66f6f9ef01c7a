"""The toy project of tests/scenarios, approved, with its state directory beside it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenarios"))

from toy_project import approved, make_project

from harness.ledger.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    with approved(make_project(tmp_path / "project"), environment) as opened:
        yield opened
