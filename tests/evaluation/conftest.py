"""Fixtures: a workplace to evaluate in, and the cages that work on this machine."""

from pathlib import Path

import pytest

from harness.cage.select import SANDBOXES, available
from harness.domain.sandbox import Sandbox
from harness.domain.statuses import CageKind

from .workplace import Workplace


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


@pytest.fixture
def uncaged() -> Sandbox:
    return SANDBOXES[CageKind.NONE]()


@pytest.fixture(params=[CageKind.BWRAP, CageKind.LANDLOCK])
def caged(request: pytest.FixtureRequest) -> Sandbox:
    if reason := available()[request.param]:
        pytest.skip(f"{request.param}: {reason}")
    return SANDBOXES[request.param]()
