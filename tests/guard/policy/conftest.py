import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from policy_project import SampleProject


@pytest.fixture
def project(tmp_path: Path) -> SampleProject:
    return SampleProject(tmp_path)
