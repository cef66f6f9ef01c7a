"""The held-out gate rests on a PASS on validation that still stands."""

from dataclasses import replace

import pytest

from harness.artifacts.experiment_files import Claim
from harness.domain.statuses import GateName, Tier, Verdict
from harness.gates.check import judge
from harness.gates.evidence import ValidationReference
from tests.gates.evidence import MINIMIZE, evidence, scored, verdict

HELD_OUT = evidence(GateName.HELD_OUT)


def test_a_pass_that_stands_and_the_tier_again() -> None:
    outcome = judge(HELD_OUT)
    assert (outcome.verdict, outcome.tier, outcome.findings) == (Verdict.PASS, Tier.SHOULD, ())


def test_without_a_pass_on_validation_it_fails() -> None:
    for reference in (
        None,
        ValidationReference(verdict=None),
        ValidationReference(verdict=verdict(Verdict.FAIL)),
        ValidationReference(verdict=verdict(Verdict.INCONCLUSIVE)),
    ):
        outcome = judge(replace(HELD_OUT, validation=reference))
        assert outcome.verdict is Verdict.FAIL
        assert outcome.findings[0].code == "validation_not_passed"


def test_a_stale_pass_does_not_carry_it_and_the_change_is_named() -> None:
    stale = ValidationReference(verdict=verdict(), changed=("result", "run-01/metrics"))
    outcome = judge(replace(HELD_OUT, validation=stale))
    assert outcome.verdict is Verdict.FAIL
    assert "result, run-01/metrics" in outcome.findings[0].message


def test_every_seed_needs_its_evaluation() -> None:
    outcome = judge(scored(HELD_OUT, 0.93, 0.94))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.findings[0].hint == "Run `harness evaluate exp-0001 --split held-out`."
    assert outcome.tier is None


def test_the_tier_is_tested_again() -> None:
    outcome = judge(scored(HELD_OUT, 0.88, 0.89, 0.87))
    assert [found.code for found in outcome.findings] == ["below_tier"]
    assert "on held-out" in outcome.findings[0].message


def test_claims_about_validation_are_not_compared_with_held_out() -> None:
    assert (
        judge(
            scored(replace(HELD_OUT, claims={"accuracy": Claim(0.94, "0.94")}), 0.91, 0.92, 0.91)
        ).findings
        == ()
    )


def at_validation(mean: float, half: float) -> ValidationReference:
    score = {"mean": mean, "interval": [mean - half, mean + half]}
    return ValidationReference(verdict=replace(verdict(), score=score))


@pytest.mark.parametrize(
    ("mean", "found"),
    [
        (0.94, []),  # as held-out
        (0.88, []),  # better on held-out
        (0.975, []),  # within three standard errors
        (0.999, ["validation_overfitted"]),
    ],
)
def test_a_score_that_does_not_carry_over_is_inconclusive(mean: float, found: list[str]) -> None:
    """Held-out is 0.94 with a 95% interval of half width 0.02: with 0.02 on validation three errors
    are 0.0433."""
    held = scored(replace(HELD_OUT, validation=at_validation(mean, 0.02)), 0.93, 0.94, 0.95)
    assert held.score is not None
    held = replace(held, score={**held.score, "interval": [0.92, 0.96]})
    outcome = judge(held)
    assert [item.code for item in outcome.findings] == found
    assert outcome.verdict is (Verdict.INCONCLUSIVE if found else Verdict.PASS)


def test_the_gap_follows_the_plans_direction() -> None:
    """An error that is larger on validation than on held-out is no overfit."""
    held = replace(
        scored(HELD_OUT, 0.93, 0.94, 0.95), objective=replace(MINIMIZE, metric="accuracy")
    )
    assert held.score is not None
    held = replace(
        held, score={**held.score, "interval": [0.93, 0.95]}, validation=at_validation(1.2, 0.01)
    )
    assert "validation_overfitted" not in {item.code for item in judge(held).findings}
    held = replace(held, validation=at_validation(0.5, 0.01))
    assert "validation_overfitted" in {item.code for item in judge(held).findings}


@pytest.mark.parametrize(
    ("better", "parent", "found"),
    [
        (True, 0.95, ["improvement_not_confirmed"]),
        (True, 0.94, []),  # as good as its parent
        (True, None, []),  # nobody looked at the parent's
        (False, 0.95, []),  # it was no improvement on validation either
    ],
)
def test_an_improvement_on_validation_is_not_worse_than_its_parent_on_held_out(
    better: bool, parent: float | None, found: list[str]
) -> None:
    held = scored(HELD_OUT, 0.93, 0.94, 0.95)
    comparison = {"against": "exp-0000", "better": better, "difference": 0.03, "seeds": [3, 3]}
    score = None if parent is None else {"mean": parent}
    outcome = judge(replace(held, comparison=comparison, parent_score=score))
    assert [item.code for item in outcome.findings] == found
    assert outcome.verdict is (Verdict.INCONCLUSIVE if found else Verdict.PASS)


def test_where_less_is_better_a_larger_error_than_the_parents_is_worse() -> None:
    held = scored(replace(HELD_OUT, objective=MINIMIZE), 0.10, 0.11, 0.12)
    comparison = {"against": "exp-0000", "better": True, "difference": -0.03, "seeds": [3, 3]}
    worse = replace(held, comparison=comparison, parent_score={"mean": 0.09})
    assert "improvement_not_confirmed" in {item.code for item in judge(worse).findings}
    assert judge(replace(worse, parent_score={"mean": 0.12})).verdict is Verdict.PASS
