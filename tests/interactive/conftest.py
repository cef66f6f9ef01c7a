"""Projects for the proofs. What may not change in the lab never does, so all of them share it."""

from pathlib import Path

import pytest

from tests.cli.journey import Journey
from tests.interactive import lab as places
from tests.interactive.lab import Lab


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return places.make_lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture
def fresh(tmp_path: Path) -> Journey:
    """Initialised and approved, nothing tried yet; for one test alone."""
    return places.make_fresh(tmp_path)
