"""Phases as gates, in the pure loop: what each asks for, in each mode, and the way back."""

from typing import Any

import pytest

from harness.contract.phases import EVIDENCE, NOTE, PHASES, SOURCES, TRAIN
from harness.contract.roles import ROLE_BY_NAME
from harness.domain.statuses import ExperimentStatus, GateMode
from harness.driver.scenario_end import key_of_step
from harness.loop.next_step import next_step
from harness.loop.state import LoopSpending, PhaseState
from harness.loop.steps import Build, PassPhase, Step, StopLoop, StopReason, WorkOnPhase
from tests.loop.states import closed, experiment, limits, session, state, verdict

DATA = PhaseState(name="data", role="data-engineer", missing=(NOTE,))
TRAINING = PhaseState(name=TRAIN, role=None, missing=("kept",))
REACHED = closed(1, ExperimentStatus.KEPT, held_out=verdict())


def step(*experiments: Any, phase: PhaseState | None, mode: str = "auto", **more: Any) -> Step:
    given = limits(mode=GateMode(mode), **more.pop("limits", {}))
    return next_step(state(*experiments, phase=phase, limits=given, **more))


def done(phase: PhaseState) -> PhaseState:
    return PhaseState(name=phase.name, role=phase.role)


@pytest.mark.parametrize("mode", [mode.value for mode in GateMode])
def test_a_phase_is_worked_on_by_its_role_in_every_mode(mode: str) -> None:
    asked = step(phase=DATA, mode=mode)
    assert asked == WorkOnPhase(phase="data", role="data-engineer", attempt=1)
    assert key_of_step("data-0-1") == ("data-engineer", "0", "1")


def test_with_its_evidence_it_is_passed_by_the_loop_or_a_person() -> None:
    assert step(phase=done(DATA)) == PassPhase(phase="data")
    assert step(phase=done(DATA), mode="full-auto") == PassPhase(phase="data")
    asked = step(phase=done(DATA), mode="supervised")
    assert isinstance(asked, StopLoop)
    assert asked.reason is StopReason.WAITING
    assert "harness phase next --reason" in asked.detail


def test_experiments_run_while_theirs_is_due_and_it_ends_as_they_do() -> None:
    assert isinstance(step(phase=TRAINING), Build)
    # Nothing is kept: the loop ends for its own reason.
    spent = step(closed(1, ExperimentStatus.DISCARDED), phase=TRAINING, limits={"experiments": 1})
    assert isinstance(spent, StopLoop)
    assert spent.reason is StopReason.BUDGET
    assert step(REACHED, phase=done(TRAINING)) == PassPhase(phase=TRAIN)
    later = PhaseState(name="analyse", role="analyst", missing=(NOTE,))
    assert isinstance(step(REACHED, phase=later), WorkOnPhase)
    ended = step(REACHED, phase=None)
    assert isinstance(ended, StopLoop)
    assert ended.reason is StopReason.TARGET


def test_an_open_experiment_goes_first_and_none_is_opened_beside_another_phase() -> None:
    assert isinstance(step(experiment(), phase=DATA), Build)


def test_experiments_of_before_training_was_opened_again_count_for_no_target() -> None:
    again = step(REACHED, phase=TRAINING, earlier=1)
    assert isinstance(again, Build)
    flat = [closed(number, ExperimentStatus.DISCARDED) for number in (1, 2, 3)]
    assert isinstance(step(*flat, phase=TRAINING), StopLoop)
    assert isinstance(step(*flat, phase=TRAINING, earlier=3), Build)


def test_three_sessions_that_record_nothing_end_the_loop() -> None:
    sessions = tuple(session(f"data-0-{number}") for number in (1, 2, 3))
    asked = step(phase=DATA, sessions=sessions)
    assert isinstance(asked, StopLoop)
    assert asked.reason is StopReason.FAILURES
    assert "data-engineer sessions of the phase data" in asked.detail


def test_a_spent_budget_begins_no_session_of_a_phase() -> None:
    spent = LoopSpending(tokens=10, held_out_left=1)
    asked = step(phase=DATA, spent=spent, limits={"tokens": 10})
    assert isinstance(asked, StopLoop)
    assert asked.reason is StopReason.BUDGET


def test_what_no_session_can_bring_about_is_asked_of_a_person() -> None:
    asked = step(phase=PhaseState(name="package", role="x", missing=("reproduced",)))
    assert isinstance(asked, StopLoop)
    assert EVIDENCE["reproduced"] in asked.detail


def test_each_phase_has_a_role_with_its_tool_and_known_evidence() -> None:
    for phase in PHASES:
        assert set().union(*phase.needs.values()) <= set(EVIDENCE)
        if phase.role is None:
            assert phase.name == TRAIN
            continue
        role = ROLE_BY_NAME[phase.role]
        assert role.step is not None
        assert "record_phase" in role.mcp_tools
        assert all({NOTE, SOURCES} & set(needs) for needs in phase.needs.values())
