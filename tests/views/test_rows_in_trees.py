"""What a tree shows of an experiment of another one, and of data that git did not bring."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.decisions.experiments import open_experiment
from harness.domain.statuses import GateName, Split, Verdict
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import check_gate, require_validation_passed, standing
from harness.ledger.project import Project
from harness.views.experiments import details
from harness.views.snapshot import active, experiment_row
from tests.working_trees import add_worktree, commit_all
from tests.world import InProcess, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path)
    yield made
    made.project.close()


@pytest.fixture
def side(world: World, tmp_path: Path) -> Iterator[Project]:
    (world.root / ".gitignore").write_text("data/\nruns/\n")
    commit_all(world.root)
    with World.opened(add_worktree(world.root, tmp_path / "side"), world.environment) as opened:
        yield opened


def passed(world: World) -> str:
    experiment = world.open().id
    world.train(experiment)
    evaluate_experiment(
        world.project,
        experiment,
        Split.VALIDATION,
        InProcess(),
        environment={},
        admit=require_validation_passed,
    )
    world.result(experiment)
    assert check_gate(world.project, experiment).verdict is Verdict.PASS
    return experiment


def test_a_pass_of_another_tree_stands_without_its_data(world: World, side: Project) -> None:
    experiment = passed(world)
    assert not (side.layout.root / "data").exists()
    record = side.ledger.experiment(experiment)
    row, found = experiment_row(side, record), details(side, record)
    assert (row["verdict"], row["findings"]) == (Verdict.PASS, [])
    assert row["tree"]["here"] is False
    assert row["tree"]["folder"] == str(world.root)
    assert (found["standing"], found["checked"]) == (Verdict.PASS, "elsewhere")
    verdict = side.ledger.latest_verdict(experiment)
    assert verdict is not None
    assert standing(side, verdict) is Verdict.PASS
    assert active(side) is None
    own = details(world.project, record)
    assert (own["standing"], own["checked"]) == (Verdict.PASS, "here")
    assert active(world.project) == experiment


def test_in_its_own_tree_what_changed_is_stale(world: World, side: Project) -> None:
    experiment = passed(world)
    world.path(experiment, "config").write_text("cut: 0.5\n")
    record = world.project.ledger.experiment(experiment)
    assert experiment_row(world.project, record)["verdict"] is Verdict.STALE
    assert experiment_row(side, record)["verdict"] is Verdict.PASS


def test_a_gate_without_data_says_so_and_notes_no_tampering(side: Project) -> None:
    experiment = open_experiment(
        side, hypothesis="A cut at 0", rationale="-", parent=None, by="model-builder"
    ).id
    verdict = check_gate(side, experiment, GateName.VALIDATION)
    found = {one.code: one for one in verdict.findings}
    assert "split_changed" not in found
    assert "is not in this working tree" in found["data_not_here"].message
    assert "ln -s" in found["data_not_here"].hint
    assert side.ledger.tampering() == []
