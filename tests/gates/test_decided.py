"""A decided experiment is judged and shown; its record stays as it was when it was decided."""

import shutil

import pytest

from harness.decisions.person import approve, reject
from harness.domain.statuses import ExperimentStatus, GateName, Split, Verdict
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import check_gate, require_validation_passed
from harness.views.snapshot import experiment_row
from tests.world import InProcess, World


@pytest.fixture
def kept(world: World) -> str:
    experiment = world.open().id
    world.train(experiment)
    for split in Split:
        evaluate_experiment(
            world.project,
            experiment,
            split,
            InProcess(),
            environment={},
            admit=require_validation_passed,
        )
        if split is Split.VALIDATION:
            world.result(experiment)
        assert check_gate(world.project, experiment, GateName(split.value)).verdict is Verdict.PASS
    approve(world.project, experiment, by="Ada", reason="looks good")
    return experiment


def everything(world: World) -> list[object]:
    return [*world.project.ledger.facts()]


@pytest.mark.parametrize("gate", [None, *GateName])
def test_the_answer_is_the_recorded_one_but_for_its_id(
    world: World, kept: str, gate: GateName | None
) -> None:
    before = everything(world)
    shown = check_gate(world.project, kept, gate)
    recorded = world.project.ledger.latest_verdict(kept, GateName(shown.gate))
    assert recorded is not None
    assert (shown.id, shown.at) == ("", "")
    names = (
        "experiment",
        "gate",
        "verdict",
        "findings",
        "evidence",
        "tier",
        "notes",
        "shortfall",
        "next_planned",
    )
    for name in names:
        assert getattr(shown, name) == getattr(recorded, name), name
    assert shown.score is not None
    assert recorded.score is not None
    assert shown.score["mean"] == recorded.score["mean"]
    assert everything(world) == before


def test_a_clone_without_checkpoints_and_vault_records_nothing(world: World, kept: str) -> None:
    """It looked, could not judge, and its FAIL came back by export for an experiment that was
    kept."""
    before = everything(world)
    for run in world.project.ledger.runs(kept):
        shutil.rmtree(world.run_path(kept, "checkpoints", run.id))
    shutil.rmtree(world.project.layout.vault)
    first, second = (check_gate(world.project, kept, GateName.VALIDATION) for _ in range(2))
    assert first == second
    assert first.verdict is Verdict.FAIL
    assert {"checkpoint_changed", "split_changed"} <= {found.code for found in first.findings}
    assert everything(world) == before
    assert world.project.ledger.tampering() == []
    row = experiment_row(world.project, world.project.ledger.experiment(kept))
    assert (row["status"], row["verdict"], row["findings"]) == ("kept", Verdict.PASS, [])


def test_of_a_discarded_one_nothing_is_recorded_either(world: World) -> None:
    experiment = world.open().id
    reject(world.project, experiment, by="Ada", reason="never mind")
    before = everything(world)
    answer = check_gate(world.project, experiment)
    assert (answer.id, answer.verdict) == ("", Verdict.FAIL)
    assert everything(world) == before
    assert world.project.ledger.experiment(experiment).status is ExperimentStatus.DISCARDED
