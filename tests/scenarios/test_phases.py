"""A project through all its phases by the real CLI, in full-auto: each role works on its own, a
later phase opens an earlier one again, and the loop ends with its target."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from toy_project import PLAN, approved, builder, make_project, oracle, play, tool, write_scenario

from harness.domain.statuses import DecisionKind, SandboxKind
from harness.ledger.phases import due_phase
from harness.ledger.project import Project
from harness.ledger.verify import verify
from harness.loop.steps import StopReason

GATED = PLAN.replace("loop: {", "gates: {mode: full-auto, phases: true}\nloop: {")
LARGEST_FIRST_REQUEST = 26_000
"""Bytes, with the briefing."""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    root = make_project(tmp_path / "a project")
    (root / "plan.md").write_text(GATED, "utf-8")
    with approved(root, os.environ) as opened:
        yield opened


def of_phase(role: str, *, attempt: int = 1, expect: str = "", **given: Any) -> dict[str, Any]:
    turn: dict[str, Any] = {"tools": [tool("note", "mcp__harness__record_phase", **given)]}
    if expect:
        turn["expect"] = expect
    turns = [turn, {"text": "Recorded."}]
    return {"role": role, "experiment": 0, "attempt": attempt, "turns": turns}


def test_each_phase_is_worked_on_passed_and_opened_again(
    project: Project, sandbox: SandboxKind, tmp_path: Path
) -> None:
    if sandbox is SandboxKind.NONE:
        pytest.skip("full-auto needs a sandbox")
    scenario = write_scenario(
        tmp_path / "s.yaml",
        of_phase("data-engineer", expect="Phase data", found="200 rows, two labels."),
        builder(1),
        oracle(1),
        of_phase("analyst", expect="Phase analyse", found="It is linear."),
        of_phase("software-engineer", found="Which rows fail is not said.", reopen="analyse"),
        of_phase("analyst", attempt=2, expect="opened again", found="Those near both centres."),
        of_phase("software-engineer", attempt=2, found="predict.py needs numpy alone."),
    )
    played = play(project, scenario, sandbox=sandbox)
    assert played.ended.reason == StopReason.TARGET, played.ended.detail
    ledger = project.ledger
    plan = project.plan()
    assert due_phase(ledger, plan) is None
    made = [one for one in ledger.decisions() if one.kind is DecisionKind.PHASE]
    names = [one.context.split()[1] for one in made]
    assert names == ["data", "train", "analyse", "analyse", "analyse", "package"]
    (again,) = ledger.phases_reopened(plan.name)
    assert (again[0].by, again[0].agent) == ("software-engineer", True)
    assert all(session.outcome == "finished" for session in ledger.sessions())
    assert verify(project.layout.ledger_db, project.layout.anchors) == []
    first = {one.asker.role: one.bytes for one in played.requests if one.turn == 0}
    assert set(first) >= {"data-engineer", "analyst", "software-engineer"}
    assert max(first.values()) <= LARGEST_FIRST_REQUEST
