"""What a person decides rests on a verdict that stands, or says OVERRIDE in the log."""

import pytest

from harness.audit.check import check_gate
from harness.audit.evaluate import evaluate_experiment
from harness.audit.person import approve, reject
from harness.domain.statuses import DecisionKind, ExperimentStatus, Split
from harness.errors import RefusedError
from tests.audit.world import InProcess, World


@pytest.fixture
def judged(world: World) -> str:
    experiment = world.open().id
    world.train(experiment)
    evaluate_experiment(world.project, experiment, Split.VALIDATION, InProcess(), environment={})
    world.result(experiment)
    return experiment


def kinds(world: World, experiment: str) -> list[DecisionKind]:
    return [decision.kind for decision in world.project.ledger.decisions(experiment)]


def test_an_approval_needs_a_verdict(world: World, judged: str) -> None:
    with pytest.raises(RefusedError, match="no verdict yet"):
        approve(world.project, judged, by="Ada", reason="looks good")
    assert kinds(world, judged) == []


def test_an_approval_of_a_pass_keeps(world: World, judged: str) -> None:
    check_gate(world.project, judged)
    approve(world.project, judged, by="Ada", reason="looks good")
    assert kinds(world, judged) == [DecisionKind.APPROVE, DecisionKind.KEEP]
    assert world.project.ledger.experiment(judged).status is ExperimentStatus.KEPT


def test_a_stale_pass_cannot_be_approved(world: World, judged: str) -> None:
    check_gate(world.project, judged)
    world.path(judged, "config").write_text("cut: 9\n")
    with pytest.raises(RefusedError, match="STALE"):
        approve(world.project, judged, by="Ada", reason="looks good")


def test_w2_a_person_who_goes_on_all_the_same_leaves_the_findings_in_the_record(world: World, judged: str) -> None:
    """There a human PROCEED threw the list of what was missing away."""
    world.path(judged, "config").unlink()
    verdict = check_gate(world.project, judged)
    with pytest.raises(RefusedError, match="FAIL"):
        approve(world.project, judged, by="Ada", reason="looks good")
    decisions = approve(world.project, judged, by="Ada", reason="I know this config", override=True)
    assert [decision.kind for decision in decisions] == [DecisionKind.OVERRIDE, DecisionKind.KEEP]
    assert all(decision.verdict == verdict.id for decision in decisions)
    assert verdict.findings[0]["code"] == "artifact_missing"


def test_a_rejection_discards(world: World, judged: str) -> None:
    check_gate(world.project, judged)
    reject(world.project, judged, by="Ada", reason="too slow")
    assert kinds(world, judged) == [DecisionKind.REJECT, DecisionKind.DISCARD]
    assert world.project.ledger.experiment(judged).status is ExperimentStatus.DISCARDED
