"""Counts of runs, alarms and experiments in a result, and words such as "all seeds": a wrong one
fails the gate, an honest sentence never does."""

from dataclasses import replace

import pytest

from harness.claims.judge import JudgedClaim, judged
from harness.claims.known_facts import HOLDS, ClaimKind, KnownFacts, RunTally
from harness.claims.sentences import sentences
from harness.detectors.kinds import KINDS
from tests.claims.corpora import KNOWN, OURS
from tests.claims.honest import HONEST as HONEST_NUMBERS


def known(tally: RunTally, launches: int) -> KnownFacts:
    ours = replace(KNOWN.experiments[OURS], tally=tally, launches=launches)
    return replace(KNOWN, experiments={**KNOWN.experiments, OURS: ours}, opened=6)


CLEAN = known(
    RunTally(
        completed=3,
        failed=0,
        failed_by_kind=(),
        seeds=3,
        seeds_launched=3,
        known_alarms=frozenset(KINDS),
    ),
    3,
)
"""Three seeds, all completed, no alarm. By seed 0.604, 0.611, 0.615; the parent 0.575 to 0.585."""
TROUBLED = known(
    RunTally(
        completed=3,
        failed=2,
        failed_by_kind=(1, 1),
        seeds=3,
        seeds_launched=4,
        alarms=("loss_spike", "divergence", "loss_spike"),
        open_alarms=2,
        fatal_alarms=1,
        alarmed_runs=2,
        known_alarms=frozenset(KINDS),
    ),
    5,
)
"""Five runs of four seeds: three completed, one failed, one was killed; three alarms, two open."""

TRUE_OF_CLEAN = (
    "All three runs completed.",
    "Every run finished without a problem.",
    "Each of the 3 seeds completed.",
    "All seeds ran to completion.",
    "No run failed.",
    "None of the runs crashed.",
    "No seeds failed, and no run was killed.",
    "There were no failures.",
    "Training ended without a single failed run.",
    "3 of 3 runs completed.",
    "Three runs completed, in 40 s each.",
    "No alarm was raised.",
    "The detectors raised no alarms.",
    "It trained without any alarm.",
    "Alarms: none",
    "No divergence alarm came up.",
    "No run diverged.",
    "There were no NaNs.",
    "Every seed is above 0.60.",
    "All seeds beat the parent.",
    "Each seed is better than the parent.",
    "All three seeds reach at least 0.604.",
    "No crashes, no NaNs, no alarms.",
    "Not one seed failed.",
    "| runs completed | alarms |\n|---|---|\n| 3 | 0 |",
)
TRUE_OF_TROUBLED = (
    "Not all runs completed.",
    "Three of the five runs completed.",
    "3 of 5 runs completed; the others were stopped.",
    "Two runs failed.",
    "2 of the 5 runs failed.",
    "One run was killed by a fatal alarm.",
    "One run failed and one was killed.",
    "There were 2 failures.",
    "Three completed runs count.",
    "Not every seed completed.",
    "One of the four seeds failed.",
    "Three alarms were raised, two of them are open.",
    "2 open alarms are explained in diagnosis.md.",
    "There was one divergence alarm.",
    "Two loss_spike alarms were raised.",
    "One fatal alarm stopped a run.",
    "There was no plateau alarm.",
    "There were no NaNs.",
    "Six experiments were opened so far.",
    "All runs except run-02 and run-04 finished.",
    "Every completed run reached the must tier.",
    "No failed run is counted in the mean.",
    "There was no alarm in run-01, run-03 and run-05.",
    "No alarms on the counted runs.",
    "No run that completed raised an alarm.",
    "Each run finished its first epoch in 2 s.",
    "All of the failed runs used lr 0.1.",
    "Runs: 3 completed, 2 failed.",
    "Two experiments were about dropout.",
)
NO_CLAIMS = (
    "All runs use the same code and seeds.",
    "Every run takes 40 s.",
    "All runs of the parent completed.",
    "No run of exp-0001 failed.",
    "In the paper all runs converged and none failed.",
    "We expect that all runs complete next time.",
    "If every run completes, the next step is a wider net.",
    "Would all seeds have finished with a lower learning rate?",
    "All completed runs share one split.",
    "The failed runs used the old loader.",
    "No alarm threshold was changed.",
    "No alarm was left without a diagnosis.",
    "No alarm stands without an explanation.",
    "No such alarm was seen in the parent.",
    "A run that fails is started again.",
    "Each run writes one checkpoint.",
    "All seeds are above 0.1 of the learning rate in the log.",
    "Early stopping ended each run at epoch 12.",
    "All else is equal.",
    '"All runs completed" is what the log should say.',
    "> All five runs completed.",
    "It needs no alarm settings.",
    "No failure mode of the model was studied.",
    "A wait until all seeds completed would have cost an hour.",
)
FALSE_OF_TROUBLED = (
    "All runs completed.",
    "All five runs completed.",
    "Every run finished.",
    "Each run was successful.",
    "All of the runs ran to completion.",
    "Every run that we started has completed.",
    "Every single run completed normally.",
    "All seeds completed.",
    "Every seed finished cleanly.",
    "All four seeds ran through.",
    "No run failed.",
    "No runs crashed.",
    "None of the runs failed.",
    "None of the five runs was killed.",
    "Not a single run failed.",
    "Not one of the runs crashed.",
    "Zero runs failed.",
    "0 runs failed.",
    "No seed failed.",
    "There were no failures.",
    "It trained without any failed run.",
    "Nothing crashed.",
    "Four runs completed.",
    "4 of 5 runs completed.",
    "Five of the five runs completed.",
    "3 of 3 runs completed.",
    "Three runs failed.",
    "There were 4 failures.",
    "Four completed runs count.",
    "All runs failed.",
    "No alarm was raised.",
    "The detectors raised no alarms.",
    "It ran without an alarm.",
    "It never raised an alarm.",
    "Alarms: none",
    "Five alarms were raised.",
    "There was no open alarm.",
    "No fatal alarm was raised.",
    "No divergence alarm was raised.",
    "There was no loss spike alarm.",
    "One loss_spike alarm was raised.",
    "No run diverged.",
    "Training never diverged.",
    "Nine experiments were opened so far.",
    "Runs: 5 completed, 0 failed.",
    "5/5 runs completed",
    "Every launched run completed.",
    "No training crashed.",
    "No alarms fired.",
)
FALSE_OF_CLEAN = (
    "Not all runs completed.",
    "One run failed.",
    "Two of the three runs completed.",
    "Two alarms were raised.",
    "Every seed is above 0.61.",
    "All seeds reach at least 0.610.",
    "Each seed is below 0.6.",
    "All three seeds are over 61 %.",
    "Five runs completed.",
)


def failing(text: str, facts: KnownFacts) -> list[JudgedClaim]:
    found = judged(sentences(text, experiment=OURS, report=True), facts, file="result.md")
    return [one for one in found if one.decides and one.kind not in HOLDS]


@pytest.mark.parametrize("text", TRUE_OF_CLEAN)
def test_a_true_sentence_passes(text: str) -> None:
    assert failing(text, CLEAN) == []


@pytest.mark.parametrize("text", TRUE_OF_TROUBLED)
def test_a_true_sentence_about_failures_passes(text: str) -> None:
    assert failing(text, TROUBLED) == []


@pytest.mark.parametrize("text", NO_CLAIMS)
@pytest.mark.parametrize("facts", [CLEAN, TROUBLED])
def test_what_is_said_of_something_else_is_no_claim(text: str, facts: KnownFacts) -> None:
    assert failing(text, facts) == []


@pytest.mark.parametrize("text", FALSE_OF_TROUBLED)
def test_a_false_sentence_fails(text: str) -> None:
    (claim, *_) = failing(text, TROUBLED)
    assert claim.kind is ClaimKind.CONTRADICTED
    assert OURS in claim.evidence or "the ledger has 6 experiments" in claim.evidence


@pytest.mark.parametrize("text", FALSE_OF_CLEAN)
def test_a_false_sentence_about_sound_runs_fails(text: str) -> None:
    assert failing(text, CLEAN) != []


@pytest.mark.parametrize("text", HONEST_NUMBERS)
def test_honest_sentences_about_numbers_stay_honest(text: str) -> None:
    assert failing(text, CLEAN) == []


def test_without_a_ledger_nothing_is_counted() -> None:
    assert failing("All runs completed; no alarm was raised.", KNOWN) == []
