"""The held-out gate rests on a PASS on validation that still stands."""

from dataclasses import replace

from harness.artifacts.claims import Claim
from harness.domain.statuses import GateName, Tier, Verdict
from harness.gates.evidence import ValidationReference
from harness.gates.held_out import judge
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
    assert outcome.findings[0].mend == "Run `harness evaluate exp-0001 --split held-out`."
    assert outcome.tier is None


def test_the_tier_is_tested_again() -> None:
    outcome = judge(scored(HELD_OUT, 0.88, 0.89, 0.87))
    assert [found.code for found in outcome.findings] == ["below_tier"]
    assert "on held-out" in outcome.findings[0].message


def test_claims_about_validation_are_not_compared_with_held_out() -> None:
    assert judge(scored(replace(HELD_OUT, claims={"accuracy": Claim(0.94, "0.94")}), 0.91, 0.92, 0.91)).findings == ()
