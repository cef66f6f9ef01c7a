from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.audit.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path)
    yield made
    made.project.close()
