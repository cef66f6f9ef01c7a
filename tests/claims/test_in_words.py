"""Results said in words, in markup and in other scripts: the false ones fail the gate, and the true
ones do not, also those that nobody looked at while the reader was written."""

from dataclasses import replace

import pytest

from harness.claims.judge import JudgedClaim, judged
from harness.claims.known_facts import HOLDS, ClaimKind, KnownFacts
from harness.claims.sentences import sentences
from tests.claims.corpora import KNOWN, OURS
from tests.claims.in_words import FALSE_BUILT, FALSE_HELD_BACK, TRUE_BUILT, TRUE_HELD_BACK

QUIET = (
    "Most of the errors are between cats and dogs: half of the cats are taken for dogs.",
    "No errors were found in the data loader.",
    "A perfect score is out of reach with this feature set, and the labels are not perfect either.",
    "The error bars were halved by using more seeds.",
    "Twice the width did not double the accuracy.",
    "The loss was half that of the parent at epoch 3.",
    "We reach the tier must; should was not reached. The plan should pass.",
    "What could be reached is open.",
    "About three fifths of the validation rows are right. 156 of the 400 rows are misclassified.",
    "It did not make a single error in the log.",
    "All answers are correctly formatted, and each row has the correct number of columns.",
    "The labels of all rows are correct, we checked fifty by hand.",
    "If all rows were right, accuracy would be 1.",
    "A model that answers everything right is what we hope for.",
    "The train accuracy is perfect. On train it makes no mistake.",
    "One third of the mistakes are ambiguous images.",
    "The accuracy is measured in percent.",
    "Dropout 0,2 was used. Learning rates 0,1, 0,01 and 0,001 were tried, with seeds 0,1,2.",
    "Its accuracy is six times that of the trivial predictor.",
    "More than half of the rows are right, and less than two thirds of the rows are right.",
    "The candidate is slightly better than exp-0001.",
    "A wider model is worse than the parent in speed. It was worse than expected.",
    "It is not better than the parent beyond the noise.",
)


def failing(text: str, known: KnownFacts = KNOWN) -> list[JudgedClaim]:
    found = judged(sentences(text, experiment=OURS, report=True), known, file="result.md")
    return [item for item in found if item.decides and item.kind not in HOLDS]


@pytest.mark.parametrize("text", [*FALSE_BUILT, *FALSE_HELD_BACK])
def test_a_false_sentence_in_words_fails_the_gate(text):
    assert failing(text) != []


@pytest.mark.parametrize("text", [*TRUE_BUILT, *TRUE_HELD_BACK, *QUIET])
def test_a_true_sentence_in_words_does_not(text):
    assert failing(text) == []


def test_a_link_beside_a_number_does_not_say_whose_it_is():
    (claim,) = failing("[accuracy 0.97](https://example.org/log)")
    assert "whose it is" in claim.evidence


def test_what_cannot_be_read_as_a_number_is_unsupported():
    (claim,) = failing("accuracy XCVII percent")
    assert claim.kind is ClaimKind.UNSUPPORTED
    assert "not readable as a number" in claim.evidence


def test_words_about_rows_need_a_score():
    bare = replace(KNOWN.experiments[OURS], scores={})
    known = replace(KNOWN, experiments={**KNOWN.experiments, OURS: bare})
    (claim,) = failing("The model makes no mistake.", known)
    assert claim.kind is ClaimKind.UNSUPPORTED


def test_where_labels_are_secret_a_tier_is_the_one_that_was_told():
    bare = replace(KNOWN.experiments[OURS], scores={}, tiers_told={"held_out": "must"})
    known = replace(KNOWN, experiments={**KNOWN.experiments, OURS: bare})
    assert failing("It reaches the tier `must` on held-out.", known) == []
    assert len(failing("It reaches the tier `should` on held-out.", known)) == 1


def test_of_another_metric_words_about_rows_are_a_note():
    other = replace(KNOWN.experiments[OURS], metric="mae", maximize=False)
    known = replace(KNOWN, experiments={**KNOWN.experiments, OURS: other})
    text = sentences("The model makes no mistake.", experiment=OURS, report=True)
    (claim,) = judged(text, known, file="result.md")
    assert (claim.kind, claim.decides) == (ClaimKind.UNSUPPORTED, False)


def test_a_number_keeps_its_line_when_markup_is_taken_out():
    (claim,) = failing("Well.\n\nThe accuracy is <b>0.</b>97.")
    assert claim.line == 3
