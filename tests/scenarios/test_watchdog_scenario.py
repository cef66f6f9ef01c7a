"""A session that reads the same file for ever, through the real CLI: it is told, ended, and a fresh
one finishes its step from the hand-off."""

from pathlib import Path
from typing import Any

from toy_project import builder, oracle, tool, write_scenario

from harness.domain.statuses import DecisionKind, ExperimentStatus, SandboxKind
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
