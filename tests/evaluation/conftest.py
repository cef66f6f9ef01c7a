"""Fixtures: a workplace to evaluate in, and the sandboxes that work on this machine."""

from pathlib import Path

import pytest

from harness.domain.sandbox import Sandbox
from harness.domain.statuses import SandboxKind
from harness.sandbox.select import SANDBOXES, available
from tests.fixtures import environment, project, root

from .workplace import Workplace

__all__ = ["environment", "project", "root"]


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


@pytest.fixture
def unsandboxed() -> Sandbox:
    return SANDBOXES[SandboxKind.NONE]()


@pytest.fixture(params=[SandboxKind.BWRAP, SandboxKind.LANDLOCK])
def sandboxed(request: pytest.FixtureRequest) -> Sandbox:
    if reason := available()[request.param]:
        pytest.skip(f"{request.param}: {reason}")
    return SANDBOXES[request.param]()
