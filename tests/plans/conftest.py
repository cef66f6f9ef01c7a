"""A small, ordinary project on disk: three tables, a plan, a state directory of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.ledger.project import Project, open_project
from tests.blobs import make_root, own_environment


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path / "my project")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return own_environment(tmp_path)


@pytest.fixture
def project(root: Path, environment: dict[str, str]) -> Iterator[Project]:
    with open_project(root, environment, clock=ManualClock()) as opened:
        yield opened
