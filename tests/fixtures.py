"""Fixtures of several rooms; a room's conftest.py imports those that it needs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.domain.grade import PERSON
from harness.ledger.project import Project, open_project
from tests.blobs import make_root, own_environment
from tests.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path)
    yield made
    made.project.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small, ordinary project on disk: three tables and a plan that nobody approved yet."""
    return make_root(tmp_path / "my project")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A state directory and a home of the project's own."""
    return own_environment(tmp_path)


@pytest.fixture
def project(root: Path, environment: dict[str, str]) -> Iterator[Project]:
    with open_project(root, environment, clock=ManualClock(), caller=PERSON) as opened:
        yield opened
