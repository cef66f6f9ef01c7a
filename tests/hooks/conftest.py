import hashlib
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "guard" / "policy"))

from hook_project import HookProject


@pytest.fixture
def project(tmp_path: Path) -> HookProject:
    return HookProject(tmp_path)


@pytest.fixture
def sound(project: HookProject) -> HookProject:
    """With a manifest, as it is after an installation."""
    files = sorted(project.programs.rglob("*.py"))
    digests = {
        str(path.relative_to(project.programs)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
    settings = json.loads((project.root / ".claude/settings.json").read_text())["hooks"]
    project.write(
        ".claude/hooks/harness/MANIFEST.json", json.dumps({"files": digests, "settings": settings})
    )
    return project


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> HookProject:
    """One for all calls of a module that leave it as it is."""
    return HookProject(tmp_path_factory.mktemp("hooks"))
