"""What a person decides rests on a verdict that stands, or says OVERRIDE in the log."""

import pytest

from harness.decisions.experiments import decide
from harness.decisions.person import approve, reject
from harness.domain.statuses import DecisionKind, ExperimentStatus, GateName, Split, Verdict
from harness.errors import RefusedError, UsageError
from harness.evaluation.experiment import evaluate_experiment
from harness.gates.check import check_gate, require_validation_passed
from harness.projections.checklist import checklist_row
from harness.views.snapshot import experiment_row
from harness.views.tables import status_words
from tests.world import InProcess, World


@pytest.fixture
def judged(world: World) -> str:
    experiment = world.open().id
    world.train(experiment)
    evaluate(world, experiment, Split.VALIDATION)
    world.result(experiment)
    return experiment


@pytest.fixture
def passed(world: World, judged: str) -> str:
    """A PASS on validation and on held-out."""
    check_gate(world.project, judged)
    evaluate(world, judged, Split.HELD_OUT)
    assert check_gate(world.project, judged, GateName.HELD_OUT).verdict is Verdict.PASS
    return judged


def evaluate(world: World, experiment: str, split: Split) -> None:
    evaluate_experiment(
        world.project,
        experiment,
        split,
        InProcess(),
        environment={},
        admit=require_validation_passed,
    )


def facts(world: World) -> int:
    return sum(1 for _ in world.project.ledger.facts())


def kinds(world: World, experiment: str) -> list[DecisionKind]:
    return [decision.kind for decision in world.project.ledger.decisions(experiment)]


@pytest.mark.parametrize("reason", ["", " \n"])
def test_a_decision_needs_a_reason(world: World, reason: str) -> None:
    experiment = world.open().id
    for decided in (approve, reject):
        with pytest.raises(UsageError, match="reason is empty"):
            decided(world.project, experiment, by="Ada", reason=reason)
    assert kinds(world, experiment) == []


def test_an_approval_needs_a_verdict(world: World, judged: str) -> None:
    with pytest.raises(RefusedError, match="on validation it has no verdict yet") as caught:
        approve(world.project, judged, by="Ada", reason="looks good")
    assert caught.value.code == "validation_not_passed"
    assert f"`harness gate check {judged} --gate validation`" in caught.value.hint
    assert kinds(world, judged) == []


def test_an_approval_rests_on_the_pass_on_held_out(world: World, passed: str) -> None:
    approve(world.project, passed, by="Ada", reason="looks good")
    assert kinds(world, passed) == [DecisionKind.APPROVE, DecisionKind.KEEP]
    assert world.project.ledger.experiment(passed).status is ExperimentStatus.KEPT
    held_out = world.project.ledger.latest_verdict(passed, GateName.HELD_OUT)
    assert held_out is not None
    assert {decision.verdict for decision in world.project.ledger.decisions(passed)} == {
        held_out.id
    }


def test_a_pass_on_validation_alone_does_not_suffice(world: World, judged: str) -> None:
    check_gate(world.project, judged)

    def refused(hint: str) -> None:
        with pytest.raises(
            RefusedError, match="on held-out it has no verdict yet; expected PASS"
        ) as caught:
            approve(world.project, judged, by="Ada", reason="looks good")
        assert caught.value.code == "held_out_not_passed"
        assert caught.value.hint == f"Run {hint}; to keep it all the same, add --override."
        assert kinds(world, judged) == []

    check = f"`harness gate check {judged} --gate held-out`"
    refused(f"`harness evaluate {judged} --split held-out`, then {check}")
    evaluate(world, judged, Split.HELD_OUT)
    refused(check)
    approve(world.project, judged, by="Ada", reason="no look is left", override=True)
    assert kinds(world, judged) == [DecisionKind.OVERRIDE, DecisionKind.KEEP]


def test_a_stale_pass_cannot_be_approved(world: World, passed: str) -> None:
    world.path(passed, "config").write_text("cut: 9\n")
    with pytest.raises(RefusedError, match="on validation its latest verdict is STALE"):
        approve(world.project, passed, by="Ada", reason="looks good")
    check_gate(world.project, passed, GateName.VALIDATION)
    with pytest.raises(RefusedError, match="on held-out its latest verdict is STALE"):
        approve(world.project, passed, by="Ada", reason="looks good")


@pytest.mark.parametrize("override", [False, True])
def test_what_is_kept_already_is_said_and_nothing_is_recorded(
    world: World, passed: str, override: bool
) -> None:
    approve(world.project, passed, by="Ada", reason="looks good")
    before = facts(world)
    with pytest.raises(
        RefusedError, match=r"exp-0001 is kept already \(d-0002 by Ada\)"
    ) as caught:
        approve(world.project, passed, by="Ada", reason="again", override=override)
    assert (caught.value.code, caught.value.exit_code) == ("already_kept", 2)
    assert facts(world) == before


def test_what_is_discarded_is_not_approved_and_not_discarded_again(
    world: World, judged: str
) -> None:
    reject(world.project, judged, by="Ada", reason="too slow")
    before = facts(world)
    for verb, hint in (
        (reject, "harness decisions exp-0001"),
        (approve, "harness experiment new --parent exp-0001"),
    ):
        with pytest.raises(
            RefusedError, match=r"exp-0001 is discarded already \(d-0002 by Ada\)"
        ) as caught:
            verb(world.project, judged, by="Ada", reason="again")
        assert (caught.value.code, caught.value.exit_code) == ("already_discarded", 2)
        assert hint in caught.value.hint
    assert facts(world) == before
    approve(world.project, judged, by="Ada", reason="fast enough after all", override=True)
    assert world.project.ledger.experiment(judged).status is ExperimentStatus.KEPT


def test_w2_a_person_who_goes_on_all_the_same_leaves_the_findings_in_the_record(
    world: World, judged: str
) -> None:
    """There a human PROCEED threw the list of what was missing away."""
    world.path(judged, "config").unlink()
    verdict = check_gate(world.project, judged)
    with pytest.raises(RefusedError, match="FAIL"):
        approve(world.project, judged, by="Ada", reason="looks good")
    decisions = approve(
        world.project, judged, by="Ada", reason="I know this config", override=True
    )
    assert [decision.kind for decision in decisions] == [DecisionKind.OVERRIDE, DecisionKind.KEEP]
    assert all(decision.verdict == verdict.id for decision in decisions)
    assert verdict.findings[0].code == "artifact_missing"
    project = world.project
    with_findings = experiment_row(project, project.ledger.experiment(judged))
    assert with_findings["overridden"] == "Ada"
    assert status_words(with_findings) == "kept, OVERRIDE by Ada"
    assert "artifact_missing" in {one["code"] for one in with_findings["findings"]}
    (inputs,) = project.ledger.checklist_inputs(dirty_only=False)
    assert "| kept (OVERRIDE) |" in checklist_row(inputs, project.plan().content)
    # What follows does not take it away.
    words = dict.fromkeys(("context", "choice", "alternatives", "reason"), "a test")
    decide(project, kind="ROLLBACK", experiment=judged, by="Ada", confidence="high", **words)
    again = experiment_row(project, project.ledger.experiment(judged))
    assert status_words(again) == "discarded, OVERRIDE by Ada"


def test_a_rejection_discards(world: World, judged: str) -> None:
    check_gate(world.project, judged)
    reject(world.project, judged, by="Ada", reason="too slow")
    assert kinds(world, judged) == [DecisionKind.REJECT, DecisionKind.DISCARD]
    assert world.project.ledger.experiment(judged).status is ExperimentStatus.DISCARDED
