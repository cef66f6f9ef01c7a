"""The truth table of the loop."""

from dataclasses import replace
from typing import Any

import pytest

from harness.domain.statuses import (
    DecisionKind,
    ExperimentStatus,
    GateMode,
    GateName,
    RunStatus,
    Split,
    Tier,
    Verdict,
)
from harness.loop.next_step import next_step
from harness.loop.state import ExperimentState, LoopSpending, LoopState
from harness.loop.steps import (
    Build,
    CheckGate,
    Decide,
    Evaluate,
    JudgeResult,
    Recover,
    Settle,
    StopLoop,
    Train,
    Wait,
)
from tests.loop.states import (
    ALL,
    BUILT,
    DONE,
    LOW,
    READ,
    closed,
    experiment,
    judged,
    limits,
    runs,
    session,
    state,
    verdict,
)

KEPT, DISCARDED = ExperimentStatus.KEPT, ExperimentStatus.DISCARDED
COMPLETED, FAILED, LOST, RUNNING = (
    RunStatus.COMPLETED,
    RunStatus.FAILED,
    RunStatus.LOST,
    RunStatus.RUNNING,
)
FRESH = experiment()
TRAINED = experiment(status=ExperimentStatus.RUNNING, runs=DONE, awaiting=ALL)
SCORED = experiment(status=ExperimentStatus.RUNNING, runs=DONE)
WRITTEN = experiment(status=ExperimentStatus.RUNNING, runs=DONE, result_written=True)
HALF = runs(COMPLETED, FAILED)
BYPASSED = runs(RunStatus.KILLED, bypassed=True)

STEPS: dict[str, tuple[LoopState, Any]] = {
    "nothing yet": (state(), Build(index=1, attempt=1, parent=None)),
    "opened, the session was cut": (
        state(FRESH, sessions=(session("build-1-1", None),)),
        Build(index=1, attempt=1, parent=None, experiment="exp-0001"),
    ),
    "the CLI was killed": (
        state(sessions=(session("build-1-1", "cut"),)),
        Build(index=1, attempt=1, parent=None),
    ),
    "the session finished without opening": (
        state(sessions=BUILT),
        Build(index=1, attempt=2, parent=None),
    ),
    "the session finished without training": (
        state(FRESH, sessions=BUILT),
        Build(index=1, attempt=2, parent=None, experiment="exp-0001"),
    ),
    "refused is an end too": (
        state(sessions=(session("build-1-1", "refused"),)),
        Build(index=1, attempt=2, parent=None),
    ),
    "a run is watched": (
        state(experiment(runs=runs(COMPLETED, RUNNING, supervised=True)), sessions=BUILT),
        Wait(experiment="exp-0001"),
    ),
    "a run nobody watches": (
        state(experiment(runs=runs(RUNNING)), sessions=BUILT),
        Recover(experiment="exp-0001"),
    ),
    "lost with its supervisor": (
        state(
            experiment(runs=runs(COMPLETED, LOST), argv=("python", "train.py"), lost=1),
            sessions=BUILT,
        ),
        Train(experiment="exp-0001", argv=("python", "train.py")),
    ),
    "the supervisor died between two seeds": (
        state(experiment(runs=runs(COMPLETED), argv=("python", "train.py")), sessions=BUILT),
        Train(experiment="exp-0001", argv=("python", "train.py")),
    ),
    "lost too often": (
        state(experiment(runs=runs(LOST), argv=("python", "train.py"), lost=3), sessions=BUILT),
        JudgeResult(experiment="exp-0001", index=1, attempt=1),
    ),
    "trained": (
        state(TRAINED, sessions=BUILT),
        Evaluate(experiment="exp-0001", split=Split.VALIDATION),
    ),
    "one seed failed, the other is scored": (
        state(experiment(runs=HALF, awaiting=frozenset({"run-01"})), sessions=BUILT),
        Evaluate(experiment="exp-0001", split=Split.VALIDATION),
    ),
    "bypassed: nothing to score, the oracle says so": (
        state(experiment(runs=BYPASSED), sessions=BUILT),
        JudgeResult(experiment="exp-0001", index=1, attempt=1),
    ),
    "scored": (
        state(SCORED, sessions=BUILT),
        JudgeResult(experiment="exp-0001", index=1, attempt=1),
    ),
    "the oracle was cut after writing": (
        state(WRITTEN, sessions=(*BUILT, session("judge-1-1", None))),
        JudgeResult(experiment="exp-0001", index=1, attempt=1),
    ),
    "the oracle wrote nothing": (
        state(SCORED, sessions=READ),
        JudgeResult(experiment="exp-0001", index=1, attempt=2),
    ),
    "the service did not serve the oracle, again and again": (
        state(SCORED, sessions=(*BUILT, *[session("judge-1-1", "unserved")] * 50)),
        JudgeResult(experiment="exp-0001", index=1, attempt=1),
    ),
    "the oracle was refused twice, and a person continues": (
        state(
            SCORED,
            sessions=(
                *BUILT,
                *[session(f"judge-1-{n}", "refused", counted=False) for n in (1, 2)],
            ),
        ),
        JudgeResult(experiment="exp-0001", index=1, attempt=3),
    ),
    "the oracle was refused twice, but had written": (
        state(WRITTEN, sessions=(*BUILT, session("judge-1-1", "refused"))),
        CheckGate(experiment="exp-0001", gate=GateName.VALIDATION),
    ),
    "the oracle wrote nothing twice": (
        state(SCORED, sessions=(*READ, session("judge-1-2"))),
        CheckGate(experiment="exp-0001", gate=GateName.VALIDATION),
    ),
    "result.md is there": (
        state(WRITTEN, sessions=READ),
        CheckGate(experiment="exp-0001", gate=GateName.VALIDATION),
    ),
    "a verdict that is stale": (
        state(judged(validation=verdict(current=False)), sessions=READ),
        CheckGate(experiment="exp-0001", gate=GateName.VALIDATION),
    ),
    "cut between verdict and move": (
        state(judged(), sessions=READ).__class__(
            limits=limits(),
            experiments=(
                experiment(status=ExperimentStatus.RUNNING, runs=DONE, validation=verdict()),
            ),
            sessions=(*READ, session("judge-1-2")),
        ),
        CheckGate(experiment="exp-0001", gate=GateName.VALIDATION),
    ),
    "passed on validation": (
        state(judged(awaiting_held_out=ALL), sessions=READ),
        Evaluate(experiment="exp-0001", split=Split.HELD_OUT),
    ),
    "held-out is scored": (
        state(judged(), sessions=READ),
        CheckGate(experiment="exp-0001", gate=GateName.HELD_OUT),
    ),
    "cut between decision and move": (
        state(judged(held_out=verdict(), decided=DecisionKind.KEEP), sessions=READ),
        Settle(experiment="exp-0001", kind=DecisionKind.KEEP),
    ),
    "runs failed: built again with the findings": (
        state(judged(runs=HALF, validation=verdict(Verdict.INCONCLUSIVE)), sessions=READ),
        Build(index=1, attempt=2, parent=None, experiment="exp-0001", findings=(LOW,)),
    ),
    "a person wants another attempt": (
        state(
            judged(decided=DecisionKind.ITERATE, validation=verdict(Verdict.FAIL)), sessions=READ
        ),
        Build(index=1, attempt=2, parent=None, experiment="exp-0001", findings=(LOW,)),
    ),
    "the second attempt needs its own oracle session": (
        state(WRITTEN, sessions=(*READ, session("build-1-2"))),
        JudgeResult(experiment="exp-0001", index=1, attempt=2),
    ),
    "the next experiment gets the findings and the kept parent": (
        state(
            closed(1, KEPT, held_out=verdict(tier=Tier.MUST), improved=True),
            closed(2, DISCARDED, validation=verdict(Verdict.FAIL)),
            limits=limits(stop_tier=Tier.COULD),
        ),
        Build(index=3, attempt=1, parent="exp-0001", findings=(LOW,)),
    ),
}


@pytest.mark.parametrize("case", STEPS)
def test_the_step_that_is_due(case: str) -> None:
    given, expected = STEPS[case]
    assert next_step(given) == expected


DECISIONS: dict[str, tuple[LoopState, DecisionKind]] = {
    "FAIL": (state(judged(validation=verdict(Verdict.FAIL)), sessions=READ), DecisionKind.DISCARD),
    "PASS and better": (state(judged(held_out=verdict()), sessions=READ), DecisionKind.KEEP),
    "PASS, not better": (
        state(judged(held_out=verdict(better=False)), sessions=READ),
        DecisionKind.DISCARD,
    ),
    "PASS on validation, not better: no look is spent": (
        state(judged(awaiting_held_out=ALL, validation=verdict(better=False)), sessions=READ),
        DecisionKind.DISCARD,
    ),
    "not better, and no look is left": (
        state(
            judged(awaiting_held_out=ALL, validation=verdict(better=False)),
            sessions=READ,
            spent=LoopSpending(held_out_left=0),
        ),
        DecisionKind.DISCARD,
    ),
    "FAIL on held-out": (
        state(judged(held_out=verdict(Verdict.FAIL)), sessions=READ),
        DecisionKind.DISCARD,
    ),
    "runs failed in three attempts": (
        state(
            judged(runs=HALF, validation=verdict(Verdict.INCONCLUSIVE)),
            sessions=tuple(
                session(step) for n in (1, 2, 3) for step in (f"build-1-{n}", f"judge-1-{n}")
            ),
        ),
        DecisionKind.DISCARD,
    ),
    "runs failed and the minutes are used": (
        state(
            judged(runs=HALF, validation=verdict(Verdict.INCONCLUSIVE)),
            sessions=READ,
            spent=LoopSpending(minutes=41),
        ),
        DecisionKind.DISCARD,
    ),
    "a person approved": (
        state(
            judged(held_out=verdict(), decided=DecisionKind.APPROVE),
            sessions=READ,
            limits=limits(mode=GateMode.SUPERVISED),
        ),
        DecisionKind.KEEP,
    ),
    "a person overrode": (
        state(
            judged(validation=verdict(Verdict.FAIL), decided=DecisionKind.OVERRIDE), sessions=READ
        ),
        DecisionKind.KEEP,
    ),
    "on validation nobody can say whether it is better, and nobody is asked": (
        state(
            judged(awaiting_held_out=ALL, validation=verdict(better=None)),
            sessions=READ,
            limits=limits(mode=GateMode.FULL_AUTO),
        ),
        DecisionKind.DISCARD,
    ),
    "on held-out nobody can say whether it is better, and nobody is asked": (
        state(
            judged(held_out=verdict(better=None)),
            sessions=READ,
            limits=limits(mode=GateMode.FULL_AUTO),
        ),
        DecisionKind.DISCARD,
    ),
    "better, and nobody is asked": (
        state(judged(held_out=verdict()), sessions=READ, limits=limits(mode=GateMode.FULL_AUTO)),
        DecisionKind.KEEP,
    ),
    "a person rejected": (
        state(
            judged(held_out=verdict(), decided=DecisionKind.REJECT),
            sessions=READ,
            limits=limits(mode=GateMode.SUPERVISED),
        ),
        DecisionKind.DISCARD,
    ),
}


@pytest.mark.parametrize("case", DECISIONS)
def test_the_decision_that_is_due(case: str) -> None:
    given, kind = DECISIONS[case]
    step = next_step(given)
    assert isinstance(step, Decide)
    assert (step.experiment, step.kind, step.verdict) == ("exp-0001", kind, "v-000001")
    assert all((step.context, step.choice, step.alternatives, step.reason, step.confidence))


STOPS: dict[str, tuple[LoopState, str]] = {
    "target": (state(closed(1, KEPT, held_out=verdict())), "target"),
    "kept, but below the target": (
        state(
            closed(1, KEPT, held_out=verdict()),
            limits=limits(stop_tier=Tier.SHOULD, experiments=1),
        ),
        "budget",
    ),
    "all experiments used": (state(closed(1, DISCARDED), limits=limits(experiments=1)), "budget"),
    "all minutes used": (state(spent=LoopSpending(minutes=40.0)), "budget"),
    "all tokens used": (state(spent=LoopSpending(tokens=9), limits=limits(tokens=9)), "budget"),
    "all dollars used": (state(spent=LoopSpending(usd=2.0), limits=limits(usd=2.0)), "budget"),
    "dollars used before the oracle": (
        state(SCORED, sessions=BUILT, spent=LoopSpending(usd=2.0), limits=limits(usd=2.0)),
        "budget",
    ),
    "no look left": (
        state(judged(awaiting_held_out=ALL), sessions=READ, spent=LoopSpending(held_out_left=0)),
        "budget",
    ),
    "patience": (state(*[closed(n, DISCARDED) for n in (1, 2, 3)]), "patience"),
    "three sessions that open nothing": (
        state(sessions=tuple(session(f"build-1-{n}") for n in (1, 2, 3))),
        "failures",
    ),
    "three sessions that train nothing": (
        state(FRESH, sessions=tuple(session(f"build-1-{n}", "failed") for n in (1, 2, 3))),
        "failures",
    ),
    "builders that the model refused": (
        state(sessions=tuple(session(f"build-1-{n}", "refused") for n in (1, 2, 3))),
        "refused",
    ),
    "oracles with answers that were too long": (
        state(
            SCORED,
            sessions=(*BUILT, *[session(f"judge-1-{n}", "max_tokens") for n in (1, 2)]),
        ),
        "max_tokens",
    ),
    "checkers whose calls nobody could read": (
        state(
            replace(SCORED, undiagnosed=("run-01",)),
            sessions=(*BUILT, *[session(f"diagnose-1-run-01-{n}", "malformed") for n in (1, 2)]),
        ),
        "malformed",
    ),
    "cut again and again": (
        state(sessions=tuple(session("build-1-1", "cut") for _ in range(10))),
        "failures",
    ),
    "the harness cannot score": (
        state(judged(validation=verdict(Verdict.INCONCLUSIVE)), sessions=READ),
        "failures",
    ),
    "the harness cannot score held-out": (
        state(judged(held_out=verdict(Verdict.INCONCLUSIVE)), sessions=READ),
        "failures",
    ),
    "steps that change nothing": (state(unchanged=3), "failures"),
    "evidence that never stands still": (
        state(judged(validation=verdict(current=False, recorded=20)), sessions=READ),
        "failures",
    ),
    "too few seeds to say whether it is better": (
        state(judged(awaiting_held_out=ALL, validation=verdict(better=None)), sessions=READ),
        "waiting",
    ),
    "the comparison with the parent was lost after the look": (
        state(judged(held_out=verdict(better=None)), sessions=READ),
        "waiting",
    ),
    "a person is asked": (
        state(judged(held_out=verdict()), sessions=READ, limits=limits(mode=GateMode.SUPERVISED)),
        "waiting",
    ),
}


@pytest.mark.parametrize("case", STOPS)
def test_the_reason_to_stop(case: str) -> None:
    given, reason = STOPS[case]
    step = next_step(given)
    assert isinstance(step, StopLoop)
    assert step.reason == reason
    assert step.detail


def test_who_is_asked_is_told_why_and_how_to_answer() -> None:
    few = verdict(better=None, why="against trivial predictor: Inconclusive: 2 seeds.")
    step = next_step(state(judged(awaiting_held_out=ALL, validation=few), sessions=READ))
    assert isinstance(step, StopLoop)
    assert "Inconclusive: 2 seeds." in step.detail
    assert "harness gate approve exp-0001 --reason" in step.detail


def test_who_is_asked_before_held_out_was_looked_at_is_told_to_look_first() -> None:
    undecided = next_step(
        state(judged(awaiting_held_out=ALL, validation=verdict(better=None)), sessions=READ)
    )
    assert isinstance(undecided, StopLoop)
    look = (
        "run `harness evaluate exp-0001 --split held-out` and `harness gate check exp-0001`, then"
    )
    assert look in undecided.detail
    decided = next_step(state(judged(held_out=verdict(better=None)), sessions=READ))
    assert isinstance(decided, StopLoop)
    assert "--split held-out" not in decided.detail


def test_what_a_person_kept_is_not_called_better() -> None:
    step = next_step(
        state(judged(validation=verdict(better=None), decided=DecisionKind.APPROVE), sessions=READ)
    )
    assert isinstance(step, Decide)
    assert step.kind is DecisionKind.KEEP
    assert step.reason == "A person decided it: APPROVE."
    assert "held-out" not in step.context


def test_a_driver_that_was_killed_is_never_held_against_the_work() -> None:
    killed = tuple(session("build-1-1", None) for _ in range(50))
    assert next_step(state(sessions=killed)) == Build(index=1, attempt=1, parent=None)


def test_a_person_who_continues_after_failures_gives_a_new_chance() -> None:
    before = tuple(session(f"build-1-{n}", counted=False) for n in (1, 2, 3))
    assert next_step(state(sessions=before)) == Build(index=1, attempt=4, parent=None)


def test_findings_reach_the_next_builder_word_for_word() -> None:
    step = next_step(state(closed(1, DISCARDED, validation=verdict(Verdict.FAIL)), sessions=READ))
    assert isinstance(step, Build)
    assert step.findings == (LOW,)


def test_keys_of_steps_differ_by_experiment_attempt_and_kind() -> None:
    steps = [given for given, _ in STEPS.values()]
    keys = {next_step(given).key for given in steps}
    assert {
        "build-1-1",
        "build-1-2",
        "judge-1-1",
        "evaluate-exp-0001-held_out",
        "check-exp-0001-validation",
    } <= keys


def test_w6_a_higher_tier_counts_for_a_lower_target() -> None:
    """There the stretch tier ranked lowest: a run that reached `should` went on for ever under the
    target `must`."""
    assert (
        next_step(state(closed(1, KEPT, held_out=verdict(tier=Tier.COULD)))).key == "stop-target"
    )


def test_w6_fifty_failures_stop() -> None:
    failed = [closed(n, DISCARDED, validation=verdict(Verdict.FAIL)) for n in range(1, 51)]
    assert next_step(state(*failed, limits=limits(experiments=500))).key == "stop-patience"


def test_another_trees_experiments_change_no_number_of_this_one() -> None:
    """Its kept one is the parent, and its open ones count for the budget."""
    elsewhere = closed(1, KEPT, held_out=verdict(tier=Tier.MUST), here=False)
    wanted = limits(stop_tier=Tier.COULD)
    assert next_step(state(elsewhere, limits=wanted)) == Build(
        index=1, attempt=1, parent="exp-0001"
    )
    own = experiment(2, status=ExperimentStatus.RUNNING, runs=DONE, result_written=False)
    later = closed(3, DISCARDED, here=False)
    given = state(elsewhere, own, later, sessions=BUILT, limits=wanted)
    assert next_step(given) == JudgeResult(experiment="exp-0002", index=1, attempt=1)
    full = LoopSpending(held_out_left=20, elsewhere=7)
    assert next_step(state(elsewhere, limits=wanted, spent=full)).key == "stop-budget"


def test_what_another_tree_found_last_is_not_told_to_this_ones_builder() -> None:
    failed = verdict(Verdict.FAIL)
    other = replace(LOW, message="Of the other tree.")
    own = closed(1, DISCARDED, validation=failed)
    later = closed(2, DISCARDED, validation=replace(failed, findings=(other,)), here=False)
    step = next_step(state(own, later, sessions=READ))
    assert isinstance(step, Build)
    assert step.findings == (LOW,)
    first = next_step(state(later))
    assert isinstance(first, Build)
    assert first.findings == ()


TRAINING = runs(RunStatus.RUNNING, supervised=True)


def beside(*experiments: ExperimentState, parallel: int = 2, **changes: Any) -> str:
    return next_step(state(*experiments, parallel=parallel, **changes)).key


def test_while_the_oldest_trains_the_next_one_is_opened_up_to_the_number() -> None:
    first, second = experiment(1, runs=TRAINING), experiment(2, runs=TRAINING)
    assert beside(first, parallel=1) == "wait-exp-0001"
    assert beside(first) == "build-2-1"
    assert beside(first, second) == "wait-exp-0001"
    assert beside(first, second, parallel=3) == "build-3-1"
    # One that was opened and has no run yet is gone on with first.
    assert beside(first, experiment(2), parallel=3) == "build-2-1"
    # Unless its seeds wait in the queue of an engine.
    queued = replace(experiment(2), held=True)
    assert beside(first, queued, parallel=3) == "build-3-1"
    assert beside(queued, parallel=1) == "wait-exp-0002"


def test_a_later_one_waits_for_its_turn_whatever_is_due() -> None:
    first = experiment(1, runs=TRAINING)
    trained = experiment(2, runs=DONE, awaiting=ALL)
    assert beside(first, trained) == "wait-exp-0001"
    assert beside(first, judged(2)) == "wait-exp-0001"
    done = experiment(1, runs=DONE, awaiting=ALL)
    assert beside(done, experiment(2, runs=TRAINING)) == "evaluate-exp-0001-validation"
    kept = closed(1, KEPT, held_out=verdict(tier=Tier.COULD), improved=True)
    target = limits(stop_tier=Tier.SHOULD)
    assert beside(kept, trained, limits=target, sessions=BUILT) == "evaluate-exp-0002-validation"
    # The target is reached: what is open is finished, and nothing is opened beside it.
    assert beside(kept, experiment(2, runs=TRAINING), limits=target) == "wait-exp-0002"


def test_what_lost_its_supervisor_trains_again_also_before_its_turn() -> None:
    first = experiment(1, runs=TRAINING)
    left = experiment(2, runs=runs(RunStatus.RUNNING))
    assert beside(first, left) == "recover-exp-0002"
    lost = experiment(2, runs=runs(RunStatus.COMPLETED, RunStatus.LOST), argv=("a",))
    assert beside(first, lost) == "train-exp-0002"
    # Between two seeds nothing of it is open, and its supervisor lives.
    assert beside(first, replace(lost, held=True)) == "wait-exp-0001"
    assert beside(replace(lost, held=True), parallel=1) == "wait-exp-0002"


def test_the_budget_and_patience_open_nothing_beside_and_end_nothing() -> None:
    first = experiment(1, runs=TRAINING)
    assert beside(first, limits=limits(experiments=1)) == "wait-exp-0001"
    failed = [closed(n, DISCARDED, validation=verdict(Verdict.FAIL)) for n in (1, 2, 3)]
    assert beside(*failed, experiment(4, runs=TRAINING)) == "wait-exp-0004"
    # Undecided ones say nothing yet of a lack of progress.
    assert beside(*failed[:2], experiment(3, runs=TRAINING)) == "build-4-1"


def test_failed_runs_are_not_tried_again_with_a_later_ones_files() -> None:
    failed = verdict(Verdict.INCONCLUSIVE, better=None)
    stopped = runs(RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.COMPLETED)
    first = judged(1, runs=stopped, validation=failed)
    assert beside(first, sessions=READ) == "build-1-2"
    step = next_step(state(first, experiment(2, runs=TRAINING), sessions=READ, parallel=2))
    assert isinstance(step, Decide)
    assert step.kind is DecisionKind.DISCARD
    assert "a later experiment" in step.reason
