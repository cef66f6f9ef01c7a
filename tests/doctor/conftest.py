"""One installed project for all tests of the doctor, put back as it was before each."""

import shutil
from pathlib import Path

import pytest

from tests.doctor.made import Made, make


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, Path]:
    """The project where it is used, and a copy to put back: its policy names its place."""
    base = tmp_path_factory.mktemp("doctor")
    made = make(base / "place")
    shutil.copytree(base / "place", base / "kept", symlinks=True)
    return made, base / "kept"


@pytest.fixture
def made(installed: tuple[Made, Path]) -> Made:
    made, kept = installed
    shutil.rmtree(made.root.parent)
    shutil.copytree(kept, made.root.parent, symlinks=True)
    return made
