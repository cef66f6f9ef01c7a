"""A config.yaml that tells another story than at the start of training is shown by the gate."""

from harness.domain.findings import Finding
from harness.domain.statuses import GateName, Verdict
from harness.gates.check import check_gate
from tests.gates.test_evaluated_and_judged import evaluate
from tests.world import GOOD, World


def judged(world: World, before: str, after: str) -> tuple[Verdict, list[Finding]]:
    experiment = world.open().id
    world.path(experiment, "config").write_text(before)
    world.train(experiment, GOOD)
    world.path(experiment, "config").write_text(after)
    evaluate(world, experiment)
    world.result(experiment)
    verdict = check_gate(world.project, experiment, GateName.VALIDATION)
    return verdict.verdict, [one for one in verdict.findings if one.code == "config_changed"]


def test_a_value_written_after_the_training_is_named_and_fails_nothing(world: World) -> None:
    verdict, (found,) = judged(world, "cut: 0.0\nmodel: line\n", "cut: 0.5\nmodel: line\n")
    assert verdict is Verdict.PASS
    assert "cut: 0.0 -> 0.5" in found.message
    assert "run-01, run-02, run-03" in found.message
    assert "model" not in found.message


def test_honest_a_comment_or_another_order_says_nothing_new(world: World) -> None:
    before, after = "cut: 0.0\nmodel: line\n", "model: line\ncut: 0.0  # at zero\n"
    assert judged(world, before, after) == (Verdict.PASS, [])
