from pathlib import Path

import pytest

from tests.install.repository import Person, sklearn_like


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path / "home")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return sklearn_like(tmp_path / "repository")
