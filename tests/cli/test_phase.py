"""`harness phase`: what is shown without a gate, and what a person passes and opens again."""

from pathlib import Path

import pytest

from harness.decisions.phases import note_phase, pass_phase
from harness.driver.loop_runner import open_gateway, run_loop
from harness.ledger.facts import GateModeSet
from harness.ledger.phases import due_phase
from harness.loop.steps import StopReason
from harness.projections.briefing import briefing
from harness.projections.state_page import state_page
from tests.cli.journey import Again, Journey
from tests.world import PLAN, InProcess, World

GATED = PLAN.replace("loop: {", "gates: {phases: true}\nloop: {")


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    again = Again(tmp_path_factory.mktemp("phases"), ("init",), ("plan", "approve"))
    return again.journey()


def test_a_plan_of_the_first_hour_has_no_further_gate(journey: Journey) -> None:
    shown = journey.harness("phase", "show", "--json")
    assert shown.document["gates"] is False
    names = [one["phase"] for one in shown.document["phases"]]
    assert names == ["data", "train", "analyse", "package"]
    assert "shown only" in journey.harness("phase").stdout
    refused = journey.harness("phase", "next", "--reason", "I looked.", "--json")
    assert refused.exit_code == 2
    assert refused.document["error"]["code"] == "phases_shown_only"
    agent = journey.harness("phase", "next", "--reason", "I looked.", CLAUDECODE="1")
    assert agent.exit_code == 2


def test_a_person_passes_overrides_and_reopens(journey: Journey) -> None:
    plan = journey.root / "plan.md"
    plan.write_text(plan.read_text("utf-8").replace("loop: {", "gates: {phases: true}\nloop: {"))
    told = journey.harness("plan", "approve").stderr
    changes = told.split("--changes ")[1].split("`")[0]
    assert journey.harness("plan", "approve", "plan.md", "--changes", changes).exit_code == 0
    assert journey.harness("phase", "next", "--reason", "Rows are counted.").exit_code == 0
    lacks = journey.harness("phase", "next", "--reason", "No time.", "--json")
    assert lacks.document["error"]["code"] == "phase_lacks_evidence"
    over = journey.harness("phase", "next", "--reason", "No time.", "--override", "--json")
    assert (over.document["override"], over.document["missing"]) == (True, ["kept"])
    shown = journey.harness("phase").stdout
    assert "OVERRIDE by " in shown
    decided = journey.harness("decisions", "--json").document["decisions"]
    assert [one["kind"] for one in decided] == ["PHASE", "OVERRIDE"]
    state = (journey.root / ".harness" / "memory" / "STATE.md").read_text("utf-8")
    assert "the phase train was passed without kept" in state
    again = journey.harness("phase", "reopen", "data", "--reason", "A column leaks.", "--json")
    assert again.document["due"] == "data"
    assert journey.harness("ledger", "verify").exit_code == 0


def test_in_supervised_the_loop_waits_for_a_person_at_a_phase(tmp_path: Path) -> None:
    world = World.make(tmp_path, GATED)
    project = world.project
    mode = {"plan": "signs", "mode": "supervised", "before": "auto"}
    project.ledger.append(GateModeSet(**mode, by="human:ada", reason="a test"))
    note_phase(project, text="60 rows.", sources=[], by="data-engineer", session=None)
    scenario = tmp_path / "never.yaml"
    scenario.write_text("sessions: [{role: analyst, experiment: 0, turns: [{text: Never.}]}]\n")
    gateway = open_gateway(project, project.plan(), {}, scenario=scenario)
    ended = run_loop(project, gateway, InProcess())  # type: ignore[arg-type]
    assert ended.reason == StopReason.WAITING
    assert "The phase data has its evidence" in ended.detail
    pass_phase(project, by="human:ada", reason="I read it.", person=True)
    view = due_phase(project.ledger, project.plan())
    assert view is not None
    assert view.name == "train"
    line = "phase: train, lacks kept"
    assert line in state_page(project.ledger, "-")
    assert line in briefing(project.ledger, "-")
    project.close()
