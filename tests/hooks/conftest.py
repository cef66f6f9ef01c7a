import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "guard" / "policy"))

from hook_project import HookProject


@pytest.fixture
def project(tmp_path: Path) -> HookProject:
    return HookProject(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> HookProject:
    """One for all calls of a module that leave it as it is."""
    return HookProject(tmp_path_factory.mktemp("hooks"))
