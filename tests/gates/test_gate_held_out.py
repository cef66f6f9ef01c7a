"""The held-out gate rests on a PASS on validation that still stands."""

from dataclasses import replace

import pytest

from harness.artifacts.experiment_files import Claim
from harness.domain.statuses import GateName, Tier, Verdict
from harness.gates.check import judge
from harness.gates.evidence import GateEvidence, ValidationReference
from tests.gates.evidence import evidence, scored, verdict

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


def told(**changes: object) -> GateEvidence:
    """Held-out as it is told: no number but the mean on its grid."""
    released = {
        "answer": "scored",
        "bound": None,
        "best": None,
        "step": 0.02,
        "tier": "should",
        "better": None,
        "codes": [],
        "bits": 2.5,
        **changes,
    }
    assert HELD_OUT.score is not None
    bare = dict.fromkeys(("spread", "interval", "baseline"))
    score = {**HELD_OUT.score, **bare, "values": [], "mean": 0.92, "released": released}
    return replace(HELD_OUT, score=score)


def test_the_tier_is_the_one_that_was_told() -> None:
    assert judge(told()).tier is Tier.SHOULD
    assert judge(told(tier="could")).tier is Tier.COULD
    below = judge(told(tier=None))
    assert (below.verdict, below.tier) == (Verdict.FAIL, None)
    (found,) = below.findings
    assert found.message == "Below the must tier: accuracy on held-out is not >= 0.9."
    assert "score" not in found.data


@pytest.mark.parametrize(
    "code", ["validation_overfitted", "held_out_too_good", "improvement_not_confirmed"]
)
def test_what_does_not_carry_over_is_inconclusive_and_no_number_says_by_how_much(
    code: str,
) -> None:
    outcome = judge(told(codes=[code]))
    assert [item.code for item in outcome.findings] == [code]
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert not any(isinstance(value, float) for value in outcome.findings[0].data.values())


def test_a_look_without_a_score_is_named_and_its_details_are_for_people() -> None:
    outcome = judge(told(answer="no score", tier=None, codes=["scorer_failed"]))
    assert [item.code for item in outcome.findings] == ["scorer_failed"]
    assert "--exact" in outcome.findings[0].hint


def test_what_was_not_told_has_no_verdict() -> None:
    sealed = tuple(
        replace(one, value=None, interval=None, baseline=None, sealed="a" * 64)
        for one in HELD_OUT.evaluations
    )
    outcome = judge(replace(HELD_OUT, evaluations=sealed, score=None))
    assert [item.code for item in outcome.findings] == ["evaluation_missing"]
    assert outcome.tier is None
