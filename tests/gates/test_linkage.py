"""What says nothing against a run passes, and launches are told."""

from dataclasses import replace

from harness.domain.findings import Finding
from harness.domain.statuses import RunStatus, Verdict
from harness.gates.check import judge
from tests.gates.evidence import TIMES, at, evidence, run, with_run


def test_times_near_the_edges_and_small_steps_back_are_no_breach():
    near = TIMES._replace(first=at(-4.9), last=at(64.9), back_s=4.9)
    assert judge(with_run(evidence(), 1, times=near)).findings == ()


def test_where_the_clock_jumped_times_are_not_judged():
    jumped = Finding("clock_set", "The clock jumped by 3600 s.", "Nothing to do.")
    outcome = judge(
        with_run(
            evidence(), 1, run=run(1, findings=(jumped,)), times=TIMES._replace(back_s=3600.0)
        )
    )
    assert (outcome.verdict, [found.code for found in outcome.findings]) == (
        Verdict.PASS,
        ["clock_set"],
    )


def test_what_the_supervisor_told_is_not_told_again():
    told = Finding(
        "metrics_out_of_time", "5 rows do not say when they were written.", "Train again."
    )
    outcome = judge(
        with_run(
            evidence(), 1, run=run(1, findings=(told,)), times=TIMES._replace(first=at(-3600))
        )
    )
    assert (outcome.verdict, [found.code for found in outcome.findings]) == (
        Verdict.FAIL,
        ["metrics_out_of_time"],
    )


def test_a_best_of_many_shows_how_many():
    given = evidence()
    counted = [item.run for item in given.runs]
    assert judge(replace(given, launched=tuple(counted))).findings == ()
    crashed = run(4, status=RunStatus.FAILED)
    others = [run(number, code="other") for number in range(5, 9)]
    outcome = judge(replace(given, launched=(*others, crashed, *counted)))
    (told,) = outcome.findings
    assert outcome.verdict is Verdict.PASS
    assert "launched 8 times; 3 runs count" in told.message
    assert (
        "(4 completed, 1 failed) 4 used other code or another command, 1 the same" in told.message
    )
    assert told.data == {"launches": 8, "counted": 3}


def test_a_training_that_starts_itself_again_is_told():
    outcome = judge(with_run(evidence(), 2, starts=5))
    assert (outcome.verdict, [found.code for found in outcome.findings]) == (
        Verdict.PASS,
        ["run_restarted"],
    )
    assert "exp-0001/run-02 was started 5 times" in outcome.findings[0].message
