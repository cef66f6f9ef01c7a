import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "hooks"))
sys.path.insert(0, str(Path(__file__).parents[1] / "policy"))

from hook_project import HookProject


@pytest.fixture
def project(tmp_path: Path) -> HookProject:
    return HookProject(tmp_path)
