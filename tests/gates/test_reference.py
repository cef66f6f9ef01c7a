"""What an experiment is compared with: the best that it goes on from, and never a weak parent."""

from dataclasses import replace
from typing import Any

import pytest

from harness.decisions.experiments import decide
from harness.domain.statuses import GateName, Split, Verdict
from harness.evaluation.outcome import TRIVIAL, explain
from harness.evaluation.scores import counted_evaluations, summarise
from harness.gates.check import check_gate
from harness.ledger.facts import EvaluationRecorded, RecordedVerdict
from harness.projections.scores import change_text
from tests.gates.test_evaluated_and_judged import evaluate, kept_parent
from tests.world import World

GOOD, WEAK = (0.0, 0.01, 0.02), (0.9, 0.91, 0.92)
BETWEEN = (0.3, 0.31, 0.32)


def judged(world: World, parent: str | None, cuts: tuple[float, ...]) -> RecordedVerdict:
    child = world.open(f"A cut of {cuts}", parent).id
    world.train(child, cuts)
    evaluate(world, child)
    world.result(child)
    return check_gate(world.project, child, GateName.VALIDATION)


def discarded(world: World, experiment: str) -> str:
    words: dict[str, Any] = dict.fromkeys(
        ("context", "choice", "alternatives", "reason"), "a test"
    )
    decide(
        world.project,
        kind="CANCEL",
        experiment=experiment,
        by="a person",
        confidence="high",
        **words,
    )
    return experiment


def mean(world: World, experiment: str) -> float:
    score = summarise(
        counted_evaluations(world.project, experiment, world.project.plan(), Split.VALIDATION)
    )
    assert score is not None
    return score.mean


def found(verdict: RecordedVerdict, code: str) -> list[str]:
    return [one.message for one in verdict.findings if one.code == code]


def test_a_weak_parent_is_no_reference_beside_what_was_kept(world: World) -> None:
    kept = kept_parent(world)
    weak = discarded(world, judged(world, kept, WEAK).experiment)
    verdict = judged(world, weak, BETWEEN)
    comparison = verdict.comparison
    assert mean(world, weak) < mean(world, verdict.experiment) < mean(world, kept)
    assert comparison is not None
    assert (comparison["against"], comparison["better"]) == (kept, False)
    assert comparison["parent"]["against"] == weak
    assert comparison["parent"]["difference"] > 0 > comparison["difference"]
    assert f"compared with {kept}" in found(verdict, "parent_not_reference")[0]
    assert f"Its parent {weak} is no better than {kept}" in explain(comparison)
    shown = change_text(world.project.ledger.summary(verdict.experiment), None)
    assert shown is not None
    assert f"than {kept}" in shown or f"against {kept}" in shown
    assert shown.endswith(f"against {weak}")


def test_a_crippled_parent_is_no_reference_beside_those_before_it(world: World) -> None:
    """Nothing is kept: the first one was discarded, and its crippled child names itself."""
    first = discarded(world, judged(world, None, GOOD).experiment)
    crippled = discarded(world, judged(world, first, WEAK).experiment)
    comparison = judged(world, crippled, GOOD).comparison
    assert comparison is not None
    assert (comparison["against"], comparison["better"]) == (first, False)


def test_without_a_parent_what_was_kept_is_the_reference(world: World) -> None:
    kept = kept_parent(world)
    verdict = judged(world, None, WEAK)
    assert verdict.comparison is not None
    assert verdict.comparison["against"] == kept
    assert "parent" not in verdict.comparison


def test_a_parent_below_the_trivial_predictor_is_no_reference(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = type(world.project.ledger).append

    def hard(ledger: Any, fact: Any) -> Any:
        scored = isinstance(fact, EvaluationRecorded)
        return append(ledger, replace(fact, baseline=fact.value + 0.01) if scored else fact)

    with monkeypatch.context() as patched:
        patched.setattr(type(world.project.ledger), "append", hard)
        hopeless = discarded(world, judged(world, None, WEAK).experiment)
    comparison = judged(world, hopeless, GOOD).comparison
    assert comparison is not None
    assert comparison["against"] == TRIVIAL


def test_a_parent_without_a_score_is_named_and_what_to_do(world: World) -> None:
    parent = world.open("Trained, never scored").id
    world.train(parent)
    discarded(world, parent)
    verdict = judged(world, parent, GOOD)
    assert verdict.comparison is not None
    assert verdict.comparison["against"] == TRIVIAL
    (message,) = found(verdict, "parent_not_scored")
    assert f"{parent} has no score" in message
    assert f"Its parent {parent} has no score" in explain(verdict.comparison)
    hints = [one.hint for one in verdict.findings if one.code == "parent_not_scored"]
    assert f"harness evaluate {parent}" in hints[0]


def test_honest_a_child_of_the_best_says_nothing_more(world: World) -> None:
    kept = kept_parent(world)
    verdict = judged(world, kept, BETWEEN)
    assert verdict.comparison is not None
    assert verdict.comparison["against"] == kept
    assert "parent" not in verdict.comparison
    assert not found(verdict, "parent_not_reference")


def test_honest_an_ablation_from_an_older_parent_passes_and_shows_both(world: World) -> None:
    """It is judged, nothing is refused; better than what was kept it is not."""
    first = discarded(world, judged(world, None, BETWEEN).experiment)
    kept = kept_parent(world)
    verdict = judged(world, first, (0.31, 0.32, 0.33))
    assert verdict.verdict is Verdict.PASS
    assert verdict.comparison is not None
    assert verdict.comparison["against"] == kept
    assert verdict.comparison["parent"]["scored"] is True
