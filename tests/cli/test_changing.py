"""A verb that changed the ledger leaves the policy snapshot as the ledger says, whether it ended
well or not."""

import ast
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import experiment as experiment_verbs
from harness.cli.changing import changing
from harness.decisions.experiments import open_experiment
from harness.errors import RefusedError
from tests.world import World

CLI = Path(__file__).parents[2] / "harness" / "cli"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    world = World.make(tmp_path)
    world.project.close()
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    return world.root


def snapshot(root: Path) -> dict[str, object]:
    value: dict[str, object] = json.loads((root / ".harness" / "policy.json").read_text("utf-8"))
    return value


def test_the_snapshot_follows_a_verb(root: Path) -> None:
    words = ["new", "--hypothesis", "wider", "--project", str(root)]
    done = CliRunner().invoke(experiment_verbs.command, words)
    assert done.exit_code == 0, done.output
    opened = snapshot(root)["open_experiment"]
    assert isinstance(opened, dict)
    assert (opened["id"], opened["hypothesis"]) == ("exp-0001", "wider")


@pytest.mark.parametrize("error", [RefusedError("no", hint="-"), KeyboardInterrupt()])
def test_the_snapshot_follows_also_when_the_verb_fails(root: Path, error: BaseException) -> None:
    def fail() -> None:
        with changing(root) as project:
            open_experiment(project, hypothesis="wider", rationale="", parent=None, by="human")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert snapshot(root)["open_experiment"] is not None
    assert "wider" in (root / ".harness" / "experiments" / "CHECKLIST.md").read_text("utf-8")


def test_looking_writes_nothing(root: Path) -> None:
    done = CliRunner().invoke(experiment_verbs.command, ["list", "--project", str(root)])
    assert done.exit_code == 0, done.output
    assert not (root / ".harness" / "policy.json").exists()


def test_the_pages_of_a_clone_stay_until_its_facts_are_imported(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with changing(root) as project:
        open_experiment(project, hypothesis="wider", rationale="", parent=None, by="human")
    clone = tmp_path / "clone"
    shutil.copytree(root, clone)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    with changing(clone, deriving=True):
        pass
    assert "wider" in (clone / ".harness" / "experiments" / "CHECKLIST.md").read_text("utf-8")
    assert snapshot(clone)["open_experiment"] is None


def test_no_verb_opens_a_project_for_writing_in_another_way() -> None:
    found = []
    for path in sorted(CLI.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "open_project":
                given = {keyword.arg for keyword in node.keywords}
                found += [] if "read_only" in given else [path.name]
    assert found == ["changing.py"]
