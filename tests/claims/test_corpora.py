"""A larger corpus of a result's sentences: each false one makes the validation gate fail, no honest one does."""

import pytest

from harness.claims.audit import judged
from harness.claims.judge import JudgedClaim
from harness.claims.known import HOLDS
from harness.claims.passages import sentences
from tests.claims.corpora import DISHONEST, KNOWN, OURS, THROUGH
from tests.claims.honest import HONEST


def failing(text: str) -> list[JudgedClaim]:
    """The claims for which the gate fails."""
    found = judged(sentences(text, experiment=OURS, report=True), KNOWN, file="result.md")
    return [item for item in found if item.decides and item.kind not in HOLDS]


@pytest.mark.parametrize("text", HONEST)
def test_an_honest_sentence_never_fails_the_gate(text):
    assert failing(text) == []


@pytest.mark.parametrize("text", DISHONEST)
def test_a_false_sentence_fails_the_gate(text):
    assert failing(text) != []


@pytest.mark.parametrize("text", THROUGH)
def test_what_gets_through_is_what_the_documentation_says(text):
    assert failing(text) == []
