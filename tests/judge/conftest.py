"""One approved project a module: tests that change it make their own."""

from pathlib import Path

import pytest

from tests.cli.journey import Journey
from tests.interactive.lab import make_fresh
from tests.judge.inside import SANDBOXES, Inside


@pytest.fixture(scope="module")
def approved(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    return make_fresh(tmp_path_factory.mktemp("judge"))


@pytest.fixture(params=SANDBOXES)
def inside(approved: Journey, request: pytest.FixtureRequest) -> Inside:
    return Inside(approved, request.param)


@pytest.fixture
def fresh(tmp_path: Path) -> Journey:
    """For one test alone."""
    return make_fresh(tmp_path)
