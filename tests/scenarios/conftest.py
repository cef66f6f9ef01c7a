"""Where the toy project and its state directory lie, also for the processes that the loop
starts."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from toy_project import approved, make_project

from harness.domain.statuses import SandboxKind
from harness.ledger.project import Project


@pytest.fixture(scope="session", autouse=True)
def _state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("A_SECRET_OF_OURS", "swordfish")
        yield


@pytest.fixture(scope="session")
def sandbox() -> SandboxKind:
    """The strongest that every machine has: the sandboxes themselves are proved in
    tests/sandbox."""
    return SandboxKind.BWRAP if shutil.which("bwrap") else SandboxKind.NONE


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with approved(make_project(tmp_path / "a project"), os.environ) as opened:
        yield opened
