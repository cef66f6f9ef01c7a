"""Hooks in the main tree and in a linked worktree, each with an experiment in work."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hook_project import HookProject
from test_reported_cases import add_worktree

from harness.guard.hooks.projects import HookedProject

OPEN_TOOL = "mcp__harness__open_experiment"
EXPERIMENTS = ".harness/experiments"


@pytest.fixture
def side(project: HookProject) -> Path:
    """A worktree with hooks of its own."""
    tree = add_worktree(project)
    shutil.copytree(project.programs, tree / ".claude" / "hooks" / "harness")
    return tree


def in_work(project: HookProject, experiment: str, **changes: Any) -> dict[str, Any]:
    """What a tree has that works on `experiment`."""
    roles = project.snapshot["roles"]
    writes = [f"{EXPERIMENTS}/{experiment}/{name}" for name in ("hypothesis.md", "config.yaml")]
    return {
        "roles": {name: {**role, "writes": writes} for name, role in roles.items()},
        "open_experiment": {
            "id": experiment,
            "hypothesis": "h",
            "status": "running",
            "runs": 1,
            "ended": 1,
            **changes,
        },
        "open_gate": None,
    }


def save(project: HookProject, own: dict[str, Any], trees: dict[str, Any]) -> None:
    project.save({**project.snapshot, "mode": "interactive", "role": None, **own, "trees": trees})


def hooks_of(project: HookProject, tree: Path) -> None:
    project.programs = tree / ".claude" / "hooks" / "harness"


def test_each_session_is_reminded_of_its_own_trees_experiment(project: HookProject, side: Path):
    save(project, in_work(project, "exp-0002"), {str(side): in_work(project, "exp-0003")})
    for tree, experiment in ((project.root, "exp-0002"), (side, "exp-0003")):
        hooks_of(project, tree)
        answer = project.event("Stop", session=experiment, stop_hook_active=False, cwd=tree)
        assert f"`harness gate check {experiment}`" in answer.output


@pytest.mark.parametrize("busy", ["main", "side"])
def test_an_open_experiment_of_the_other_tree_stops_nobody(
    project: HookProject, side: Path, busy: str
):
    none = {**in_work(project, "exp-0002"), "open_experiment": None}
    if busy == "main":
        save(project, in_work(project, "exp-0002"), {})
    else:
        save(project, none, {str(side): in_work(project, "exp-0003")})
    for tree, name in ((project.root, "main"), (side, "side")):
        hooks_of(project, tree)
        command = "harness experiment new --hypothesis wider"
        assert project.call(OPEN_TOOL, {"hypothesis": "w"}, cwd=tree).denied == (name == busy)
        assert project.shell(command, cwd=tree).denied == (name == busy)


def test_a_session_writes_its_own_trees_artifacts(project: HookProject, side: Path):
    save(project, in_work(project, "exp-0002"), {str(side): in_work(project, "exp-0003")})
    hooks_of(project, side)
    for experiment, denied in (("exp-0003", False), ("exp-0002", True)):
        path = str(side / EXPERIMENTS / experiment / "config.yaml")
        assert project.call("Write", {"file_path": path}, cwd=side).denied == denied
    assert project.call("Write", {"file_path": str(side / "plan.md")}, cwd=side).denied


def test_a_worktree_that_is_no_project_works_on_the_main_trees(project: HookProject, side: Path):
    save(project, in_work(project, "exp-0002"), {})
    shutil.rmtree(side / ".harness")
    seen = HookedProject(str(side), str(project.root), by_plugin=False)
    assert seen.snapshot["open_experiment"]["id"] == "exp-0002"


@pytest.mark.parametrize("own", [[], "x", {"open_experiment": {}}, {"roles": {"a": 1}}], ids=repr)
def test_a_damaged_part_denies_and_never_crashes(project: HookProject, side: Path, own: Any):
    save(project, in_work(project, "exp-0002"), {str(side): own})
    hooks_of(project, side)
    answer = project.call("Write", {"file_path": str(side / "train.py")}, cwd=side)
    assert answer.denied == isinstance(own, dict)
    hooks_of(project, project.root)
    assert not project.call("Write", {"file_path": "train.py"}, cwd=project.root).denied


def test_the_briefing_is_the_trees_own_and_else_the_main_ones(project: HookProject, side: Path):
    save(project, in_work(project, "exp-0002"), {})
    page = Path(".harness/memory/BRIEFING.md")
    (project.root / page).parent.mkdir(parents=True, exist_ok=True)
    (project.root / page).write_text("of the main tree")
    hooks_of(project, side)
    shutil.rmtree(side / page.parent, ignore_errors=True)
    begun = {"source": "startup", "cwd": side, "session": "s-2"}
    assert "of the main tree" in project.event("SessionStart", **begun).output
    (side / page).parent.mkdir(parents=True)
    (side / page).write_text("of the side")
    assert "of the side" in project.event("SessionStart", **begun).output
    assert json.loads((project.root / ".harness/policy.json").read_text())["trees"] == {}
