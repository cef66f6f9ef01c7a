"""The audit in a linked worktree: what is only in another tree is no change there."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.audit.changes import control_changes, receipt_changes, recorded_changes
from harness.decisions.experiments import decide
from harness.domain.statuses import DecisionKind
from harness.guard.accepted import accept_on_record, accepted_list, note_receipts
from harness.ledger.project import Project
from tests.working_trees import add_worktree, commit_all
from tests.world import World


@pytest.fixture
def side(world: World, tmp_path: Path) -> Iterator[Project]:
    """A worktree of a project with control files that a person accepted, and receipts."""
    (world.root / ".gitignore").write_text("data/\nruns/\nreceipts/\n")
    (world.root / ".claude").mkdir()
    (world.root / ".claude/settings.json").write_text("{}")
    receipts = world.root / ".harness/receipts/s1.jsonl"
    receipts.parent.mkdir()
    receipts.write_text("{}\n")
    commit_all(world.root)
    accept_on_record(world.project, by="Ada")
    note_receipts(world.project.layout, cut=())
    root = add_worktree(world.root, tmp_path / "side")
    with World.opened(root, world.environment) as opened:
        yield opened


def changes(project: Project) -> list[str]:
    accepted = accepted_list(project)
    assert accepted is not None
    found = [
        *control_changes(project.layout.root, accepted),
        *receipt_changes(project, accepted),
        *recorded_changes(project),
    ]
    return [change.path for change in found]


def test_what_only_the_main_tree_has_is_no_change(world: World, side: Project) -> None:
    experiment = world.open().id
    world.train(experiment)
    assert changes(world.project) == changes(side) == []
    words = dict.fromkeys(("context", "choice", "alternatives", "reason"), "a test")
    decide(
        world.project,
        kind=DecisionKind.CANCEL,
        experiment=experiment,
        by="a person",
        confidence="high",
        **words,
    )
    assert changes(world.project) == changes(side) == []


def test_what_changed_is_named_in_both(world: World, side: Project) -> None:
    config = world.root / ".git/config"
    config.write_text(config.read_text() + "[core]\n\tfsmonitor = x\n")
    (world.root / ".harness/receipts/s1.jsonl").write_text("")
    for project in (world.project, side):
        assert [Path(path).name for path in changes(project)] == ["config", "s1.jsonl"]


def test_each_trees_own_files_are_still_looked_at(world: World, side: Project) -> None:
    (side.layout.root / ".claude/settings.json").write_text('{"disableAllHooks": true}')
    assert changes(side) == [".claude/settings.json"]
    assert changes(world.project) == []
    experiment = world.open().id
    world.train(experiment)
    shutil.rmtree(world.run_path(experiment, "metrics").parent)
    assert [Path(path).name for path in changes(world.project)] == [
        "metrics.jsonl",
        "training_status.json",
    ]
    assert changes(side) == [".claude/settings.json"]
