"""A larger corpus of a result's sentences: each false one makes the validation gate fail, no honest
one does."""

import numpy as np
import pytest

from harness.claims.judge import JudgedClaim, judged
from harness.claims.known_facts import HOLDS
from harness.claims.sentences import sentences
from harness.domain.records import Objective
from harness.domain.statuses import Direction, Tier
from harness.evaluation.comparison import Earlier, combine
from harness.evaluation.noise_floor import compare
from harness.evaluation.outcome import explain
from harness.evaluation.paired import paired_test
from tests.claims.corpora import DISHONEST, KNOWN, OURS, PARENT, THROUGH
from tests.claims.honest import HONEST


def failing(text: str) -> list[JudgedClaim]:
    """The claims for which the gate fails."""
    found = judged(sentences(text, experiment=OURS, report=True), KNOWN, file="result.md")
    return [item for item in found if item.decides and item.kind not in HOLDS]


@pytest.mark.parametrize("text", HONEST)
def test_an_honest_sentence_never_fails_the_gate(text):
    assert failing(text) == []


def test_what_the_gate_says_of_a_comparison_may_be_copied_into_a_result():
    ours, theirs = (KNOWN.experiments[name].scores["validation"].values for name in (OURS, PARENT))
    objective = Objective(
        metric="accuracy", direction=Direction.MAXIMIZE, tiers={Tier.MUST: 0.6}, seeds=3, queries=1
    )
    earlier = [Earlier(experiment="exp-0003", p=0.02, better=True)]
    candidate, reference = np.zeros((1, 400)), np.zeros((1, 400))
    candidate[0, :40], reference[0, 40:60] = 1, 1
    for paired in (None, paired_test(candidate, reference, right_or_wrong=True, seed=1)):
        made = combine(compare(ours, theirs, objective), paired, earlier, objective).plain()
        why = explain({**made, "seeds": [len(ours), len(theirs)]})
        assert "after correction for" in why
        assert failing(why) == [], why


@pytest.mark.parametrize("text", DISHONEST)
def test_a_false_sentence_fails_the_gate(text):
    assert failing(text) != []


@pytest.mark.parametrize("text", THROUGH)
def test_what_gets_through_is_what_the_documentation_says(text):
    assert failing(text) == []
