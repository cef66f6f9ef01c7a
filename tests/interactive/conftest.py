"""Projects for the proofs. What may not change in the lab never does, so all of them share it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.journey import Journey
from tests.interactive import lab as places
from tests.interactive.lab import Lab
from tests.interactive.place import ROOT

PLUGIN_PARTS = (
    ".claude-plugin",
    "agents",
    "commands",
    "hooks",
    "harness/guard/policy",
    "harness/guard/hooks",
)
FILTER = "harness/domain/plain_text.py"


@pytest.fixture(scope="session")
def the_lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return places.make_lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture
def lab(the_lab: Lab) -> Iterator[Lab]:
    """What the CLI's dialogs write in the project goes with the test."""
    yield the_lab
    (the_lab.root / ".claude/settings.local.json").unlink(missing_ok=True)


@pytest.fixture
def fresh(tmp_path: Path) -> Journey:
    """Initialised and approved, nothing tried yet; for one test alone."""
    return places.make_fresh(tmp_path)


@pytest.fixture
def bare(tmp_path: Path) -> Journey:
    """A project with a plan and .harness/, and no settings, hooks or commands of its own."""
    return places.make_fresh(tmp_path, "--hooks", "plugin")


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The plugin at another place: a session that is told to write to it must not reach this
    repository."""
    plugin = tmp_path / "plugin"
    for name in PLUGIN_PARTS:
        shutil.copytree(ROOT / name, plugin / name, ignore=shutil.ignore_patterns("__pycache__"))
    (plugin / "harness" / "__init__.py").touch()
    (plugin / "harness" / "domain").mkdir()
    shutil.copy(ROOT / FILTER, plugin / FILTER)
    return plugin
