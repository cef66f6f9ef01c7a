"""What Zero Operators' own tests asked of its resolver and its gate, asked of ours."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.artifacts.locate import active_experiment
from harness.domain.findings import as_text
from harness.domain.ids import experiment_id
from harness.domain.records import Experiment, Run
from harness.domain.statuses import RunStatus, Verdict
from harness.gates.check import judge
from harness.gates.evidence import GateEvidence
from tests.gates.evidence import evidence, run, scored, with_run, without_file

RUNNING, COMPLETED = RunStatus.RUNNING, RunStatus.COMPLETED
NOT_ACTIVE = (
    RunStatus.PENDING,
    RunStatus.FAILED,
    RunStatus.KILLED,
    RunStatus.LOST,
    RunStatus.CANCELLED,
)


def pair(number: int, *statuses: RunStatus) -> tuple[Experiment, list[Run]]:
    experiment = replace(evidence().experiment, id=experiment_id(number), number=number)
    return experiment, [
        run(place, status=status) for place, status in enumerate(statuses, start=1)
    ]


def resolve(*pairs: tuple[Experiment, list[Run]], alive: bool = True) -> str | None:
    return active_experiment(pairs, lambda run: alive)


def test_a_running_experiment_is_preferred_to_newer_completed_ones() -> None:
    assert resolve(pair(1, COMPLETED), pair(2, RUNNING), pair(3, COMPLETED)) == "exp-0002"


def test_the_newest_of_several_running_ones_wins_in_any_order() -> None:
    assert resolve(pair(4, RUNNING), pair(7, RUNNING), pair(5, RUNNING)) == "exp-0007"


def test_without_a_running_one_the_newest_completed_is_taken() -> None:
    assert resolve(pair(1, COMPLETED), pair(2, COMPLETED), pair(3, *NOT_ACTIVE)) == "exp-0002"


@pytest.mark.parametrize("status", NOT_ACTIVE)
def test_failed_and_aborted_ones_are_skipped(status: RunStatus) -> None:
    assert resolve(pair(1, COMPLETED), pair(2, status)) == "exp-0001"
    assert resolve(pair(1, status)) is None


def test_nothing_is_active_in_an_empty_project() -> None:
    assert resolve() is None


def test_w3_a_crashed_run_that_still_says_running_does_not_win() -> None:
    """There it beat a newer completed one for ever."""
    assert resolve(pair(1, RUNNING), pair(2, COMPLETED), alive=False) == "exp-0002"


def without_checkpoints(given: GateEvidence) -> GateEvidence:
    return with_run(given, 2, checkpoints=())


def without_run_file(name: str) -> Callable[[GateEvidence], GateEvidence]:
    return lambda given: with_run(
        given, 2, **{name: replace(getattr(given.runs[1], name), sha256=None)}
    )


MISSING: dict[str, tuple[str, Callable[[GateEvidence], GateEvidence]]] = {
    "hypothesis": ("hypothesis.md", lambda given: without_file(given, "hypothesis")),
    "config": ("config.yaml", lambda given: without_file(given, "config")),
    "code": ("code.json", lambda given: without_file(given, "code")),
    "result": ("result.md", lambda given: without_file(given, "result")),
    "score": ("score.json", lambda given: without_file(given, "score")),
    "metrics": ("metrics.jsonl", without_run_file("metrics")),
    "status": ("training_status.json", without_run_file("status")),
    "evaluation file": ("evaluation.json", without_run_file("evaluation")),
    "checkpoint": ("no final checkpoint", without_checkpoints),
    "a seed's run": ("2 of 3 seeds", lambda given: replace(given, runs=given.runs[:2])),
    "evaluations": ("no recomputed evaluation", lambda given: scored(replace(given, claims={}))),
}


@pytest.mark.parametrize("item", MISSING)
def test_each_missing_item_blocks_and_is_named(item: str) -> None:
    words, remove = MISSING[item]
    outcome = judge(remove(evidence()))
    assert outcome.verdict is not Verdict.PASS
    assert words in as_text(outcome.findings)


def test_all_present_passes() -> None:
    outcome = judge(evidence())
    assert (outcome.verdict, outcome.findings) == (Verdict.PASS, ())


def test_the_rationale_lists_everything_that_is_missing_at_once() -> None:
    given = evidence(claims={})
    for name in (
        "hypothesis",
        "config",
        "code",
        "result",
        "score",
        "metrics",
        "status",
        "checkpoint",
    ):
        given = MISSING[name][1](given)
    given = scored(given, 0.93)
    text = as_text(judge(given).findings)
    expected = [
        MISSING[name][0]
        for name in ("hypothesis", "config", "code", "result", "score", "metrics", "status")
    ]
    for words in [*expected, "no final checkpoint", "no recomputed evaluation"]:
        assert words in text
