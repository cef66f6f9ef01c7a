"""Open alarms bring the checker, whatever the plan says; what it proposes is ranked into the next
hypothesis."""

from dataclasses import replace

from harness.artifacts.next_ideas import Idea, ideas, with_ideas
from harness.domain.statuses import DecisionKind, ExperimentStatus, RunStatus, Verdict
from harness.loop.next_step import CHECKER_SESSIONS, next_step
from harness.loop.state import CUT_IN_A_ROW, MOST_IDEAS, rank
from harness.loop.steps import (
    Build,
    Decide,
    Diagnose,
    Evaluate,
    JudgeResult,
    Scout,
    StopLoop,
    StopReason,
)
from tests.loop.states import (
    ALL,
    BUILT,
    DONE,
    closed,
    experiment,
    judged,
    limits,
    runs,
    session,
    state,
    verdict,
)

ALARMS = {"divergence": "fatal", "plateau": "warning"}
SURE = Idea(text="Clip gradients", answers="divergence", confidence="high")
UNSURE = Idea(text="Lower the rate", answers="divergence", confidence="low")
MILD = Idea(text="Train longer", answers="plateau", confidence="high")
OWN = Idea(text="A wider network")


def broken(**changes):
    plain = {
        "runs": DONE,
        "awaiting": ALL,
        "undiagnosed": ("run-01", "run-03"),
        "alarms": ALARMS,
        "model": "mlp",
    }
    return experiment(1, ExperimentStatus.RUNNING, **{**plain, **changes})


def test_each_run_with_an_open_alarm_gets_its_checker_before_anything_is_scored() -> None:
    step = next_step(state(broken(), sessions=BUILT))
    assert step == Diagnose(experiment="exp-0001", index=1, run="run-01", attempt=1, model="mlp")
    assert isinstance(step, Diagnose)
    assert (step.key, step.name) == ("diagnose-1-run-01-1", "training-mlp-checker")
    after = next_step(state(broken(undiagnosed=("run-03",)), sessions=(*BUILT, session(step.key))))
    assert isinstance(after, Diagnose)
    assert after.key == "diagnose-1-run-03-2"


def test_a_cut_checker_is_brought_again_under_its_key() -> None:
    step = next_step(state(broken(), sessions=(*BUILT, session("diagnose-1-run-01-1", "cut"))))
    assert step.key == "diagnose-1-run-01-1"
    cuts = [session("diagnose-1-run-01-1", "cut")] * CUT_IN_A_ROW
    stopped = next_step(state(broken(), sessions=(*BUILT, *cuts)))
    assert isinstance(stopped, StopLoop)
    assert stopped.reason is StopReason.FAILURES


def test_a_checker_that_explains_nothing_is_asked_twice_and_the_gate_finds_it() -> None:
    given = broken(undiagnosed=("run-01",))
    sessions = (
        *BUILT,
        *(session(f"diagnose-1-run-01-{place + 1}") for place in range(CHECKER_SESSIONS)),
    )
    assert isinstance(next_step(state(given, sessions=sessions)), Evaluate)


def test_a_scout_answers_a_diagnosis_where_the_plan_gives_it_something_to_read() -> None:
    explained = broken(undiagnosed=())
    reading = limits(references=True)
    step = next_step(state(explained, sessions=BUILT, limits=reading))
    assert step == Scout(experiment="exp-0001", index=1, attempt=1)
    assert isinstance(next_step(state(explained, sessions=BUILT)), Evaluate)
    assert isinstance(next_step(state(broken(), sessions=BUILT, limits=reading)), Diagnose)
    for done in (
        state(replace(explained, methods_written=True), sessions=BUILT, limits=reading),
        state(explained, sessions=(*BUILT, session("scout-1-1")), limits=reading),
        state(broken(undiagnosed=(), alarms={}), sessions=BUILT, limits=reading),
    ):
        assert isinstance(next_step(done), Evaluate)


def test_spent_money_stops_before_a_checker() -> None:
    given = state(broken(), sessions=BUILT, limits=limits(usd=1.0))
    step = next_step(replace(given, spent=replace(given.spent, usd=1.5)))
    assert isinstance(step, StopLoop)
    assert step.reason is StopReason.BUDGET


def test_a_stopped_and_explained_run_refutes_the_hypothesis() -> None:
    killed = runs(RunStatus.KILLED, stopped_by="divergence")
    killed = tuple(
        replace(run, reason="stopped by the alarm divergence at row 9: loss") for run in killed
    )
    inconclusive = verdict(Verdict.INCONCLUSIVE)
    given = judged(1, runs=killed, validation=inconclusive, alarms=ALARMS)
    step = next_step(state(given, sessions=(*BUILT, session("judge-1-1"))))
    assert isinstance(step, Decide)
    assert step.kind is DecisionKind.DISCARD
    assert "stopped by the alarm divergence" in step.reason
    failed = replace(given, runs=runs(RunStatus.FAILED))
    assert isinstance(next_step(state(failed, sessions=(*BUILT, session("judge-1-1")))), Build)
    unread = replace(given, result_written=False)
    assert isinstance(next_step(state(unread, sessions=BUILT)), JudgeResult)


def test_a_run_behind_its_parent_refutes_the_hypothesis_without_a_diagnosis() -> None:
    killed = runs(RunStatus.KILLED, stopped_by="behind_parent")
    killed = tuple(replace(run, reason="stopped at row 16: 0.5") for run in killed)
    inconclusive = verdict(Verdict.INCONCLUSIVE)
    given = judged(1, runs=killed, validation=inconclusive, alarms={})
    step = next_step(state(given, sessions=(*BUILT, session("judge-1-1"))))
    assert isinstance(step, Decide)
    assert step.kind is DecisionKind.DISCARD
    assert step.reason == "run-01 was stopped at row 16: 0.5; its other seeds were not trained"


def test_the_next_build_begins_with_the_ranked_candidates() -> None:
    before = closed(
        1,
        ExperimentStatus.DISCARDED,
        alarms=ALARMS,
        ideas=(OWN, MILD, UNSURE, SURE),
        hypothesis="x",
    )
    step = next_step(state(before, sessions=(*BUILT, session("judge-1-1"))))
    assert isinstance(step, Build)
    assert step.candidates == (SURE, UNSURE, MILD, OWN)
    plain = replace(before, ideas=(OWN,), alarms={})
    after = next_step(state(plain, sessions=BUILT))
    assert isinstance(after, Build)
    assert after.candidates == ()


def test_ranking_leaves_out_what_was_tried_and_what_is_said_twice() -> None:
    again = Idea(text="clip  Gradients.", answers="divergence", confidence="low")
    assert rank([SURE, again, UNSURE], ALARMS, []) == (SURE, UNSURE)
    assert rank([SURE, UNSURE], ALARMS, ["CLIP gradients"]) == (UNSURE,)
    many = [Idea(text=f"idea {place}") for place in range(3 * MOST_IDEAS)]
    assert rank(many, {}, []) == tuple(many[:MOST_IDEAS])


def test_ideas_are_read_as_they_are_written() -> None:
    text = with_ideas(
        "# Next\n\n1. A wider network\n", "After the diagnosis of run-01", [SURE, MILD]
    )
    assert ideas(text) == [SURE, MILD, OWN]
    assert with_ideas(text, "After the diagnosis of run-01", [SURE]) == text
