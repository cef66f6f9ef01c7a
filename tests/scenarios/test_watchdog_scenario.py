"""A session that reads the same file for ever, or whose tool hangs, through the real CLI: it is
ended, and a fresh one finishes its step from the hand-off."""

import functools
import importlib
import threading
from pathlib import Path
from typing import Any

import pytest
from toy_project import builder, oracle, tool, write_scenario

from harness.domain.statuses import DecisionKind, ExperimentStatus, SandboxKind
from harness.driver import pulse, role_sessions, supervisors
from harness.driver.loop_runner import open_gateway, run_loop
from harness.ledger.project import Project
from harness.sandbox.select import choose


def lost() -> dict[str, Any]:
    """A builder that only reads the plan, far more often than the watchdog lets it."""
    turns: list[dict[str, Any]] = [
        {"tools": [tool(f"read_{number}", "Read", file_path="plan.md")]} for number in range(30)
    ]
    return {
        "role": "model-builder",
        "experiment": 1,
        "attempt": 1,
        "turns": [*turns, {"text": "I read the plan."}],
    }


def test_a_session_in_circles_is_ended_and_a_fresh_one_goes_on(
    project: Project, sandbox: SandboxKind, tmp_path: Path
) -> None:
    second = {**builder(1, expect="was ended"), "attempt": 2}
    scenario = write_scenario(tmp_path / "s.yaml", lost(), second, oracle(1))
    gateway = open_gateway(project, project.plan(), {}, scenario=scenario)
    run_loop(project, gateway, choose(sandbox, required=False))
    ledger = project.ledger
    outcomes = [(one.step, one.outcome) for one in ledger.sessions()]
    assert outcomes[:2] == [("build-1-1", "failed"), ("build-1-2", "finished")]
    watched = [one for one in ledger.decisions() if one.kind is DecisionKind.WATCHDOG]
    assert [one.choice for one in watched] == [
        "Nudge it.",
        "End it; its step begins again in a fresh session.",
    ]
    assert "Read, brought no new answer" in watched[0].reason
    (hand_off,) = ledger.hand_offs()
    assert "talked in circles" in hand_off.text
    assert "Next: No run was started." in hand_off.text
    assert ledger.experiments()[0].status in (ExperimentStatus.KEPT, ExperimentStatus.JUDGED)


def test_a_tool_that_hangs_stops_no_watchdog(
    project: Project, sandbox: SandboxKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It blocks its thread, as a dead network disk does: the driver hears the session no less. When
    it goes on beside the fresh session, it starts nothing."""
    module = importlib.import_module("harness.driver.tools.start_run")
    asked, released = [], threading.Event()
    require, start = module.require_open_experiment, supervisors.start
    started: list[list[str]] = []

    def hangs_once(*words: Any) -> None:
        asked.append(threading.current_thread())
        if len(asked) == 1:
            released.wait()
        elif len(asked) == 2:
            released.set()
            asked[0].join()
        require(*words)

    def counted(command: list[str], **more: Any) -> Any:
        started.append(command)
        return start(command, **more)

    monkeypatch.setattr(module, "require_open_experiment", hangs_once)
    monkeypatch.setattr(supervisors, "start", counted)
    monkeypatch.setattr(pulse, "LONGEST_WORK_S", 1.0)
    impatient = functools.partial(role_sessions.SessionSpec, silence_seconds=20.0)
    monkeypatch.setattr(role_sessions, "SessionSpec", impatient)
    scenario = write_scenario(tmp_path / "s.yaml", builder(1), oracle(1))
    gateway = open_gateway(project, project.plan(), {}, scenario=scenario)
    try:
        ended = run_loop(project, gateway, choose(sandbox, required=False))
    finally:
        released.set()
    ledger = project.ledger
    assert ended.reason == "target", ended.detail
    outcomes = [(one.step, one.outcome) for one in ledger.sessions()]
    assert outcomes[:2] == [("build-1-1", "cut"), ("build-1-1", "finished")]
    (watched,) = [one for one in ledger.decisions() if one.kind is DecisionKind.WATCHDOG]
    assert watched.reason.startswith("start_run did not answer, and no message came, for 21 s;")
    assert ledger.sessions()[0].detail == "start_run did not answer"
    (training,) = [command for command in started if "train" in command]
    assert ledger.sessions()[1].id in training
    (left,) = ledger.hand_offs()
    assert "Stopped while it waited for: start_run." in left.text
