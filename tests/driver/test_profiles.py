"""Profiles: what sessions are given, and that nothing of it reaches a gate."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from toy_project import PLAN, builder, write_scenario

from harness.cli.run import command
from harness.contract.profiles import DEFAULT, LOW_TOKEN, PROFILES, Profile, profile_of
from harness.contract.roles import ROLE_BY_NAME
from harness.domain.prices import FAMILIES
from harness.domain.statuses import SandboxKind
from harness.driver import role_sessions
from harness.driver.loop_runner import open_gateway, run_loop, within
from harness.driver.session import SessionEnding, SessionOutcome, SessionSpec
from harness.ledger.project import Project
from harness.loop.limits import limits_of
from harness.plans.parse import parse_plan
from harness.sandbox.select import choose

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "docs" / "evidence" / "cost_profiles.json"


def test_low_token_is_smaller_in_every_knob() -> None:
    plain, low = PROFILES[DEFAULT], PROFILES[LOW_TOKEN]
    same = [
        one.name for one in fields(Profile) if getattr(plain, one.name) == getattr(low, one.name)
    ]
    assert same == []
    assert low.briefing < plain.briefing
    assert low.max_turns < plain.max_turns
    assert low.model in FAMILIES
    for role in ROLE_BY_NAME.values():
        assert set(low.of(role).tools) <= set(role.tools)
        assert low.of(role).mcp_tools == role.mcp_tools  # what a gate needs is written with these


@pytest.mark.parametrize("name", ["model-builder", "training-checker", "oracle"])
def test_each_role_of_the_loop_can_still_read(name: str) -> None:
    assert {"Read", "Bash"} & set(PROFILES[LOW_TOKEN].of(ROLE_BY_NAME[name]).tools)


def test_a_profile_bounds_the_plans_limits(project: Project) -> None:
    plan = parse_plan(PLAN.replace("loop: {", "references: [papers]\nloop: {"), where="plan.md")
    limits = limits_of(project, project.plan(), plan)
    assert within(limits, PROFILES[DEFAULT]) == limits
    low = within(limits, PROFILES[LOW_TOKEN])
    assert (limits.references, low.references) == (True, False)
    assert within(limits, Profile(experiments=1)).experiments == 1
    assert low.experiments == min(limits.experiments, 4)
    assert (low.stop_tier, low.mode, low.seeds) == (limits.stop_tier, limits.mode, limits.seeds)


def test_the_plan_names_one_and_the_flag_goes_before_it(project: Project) -> None:
    approved = project.plan()
    assert profile_of(approved.content) == DEFAULT
    assert profile_of({**approved.content, "agents": {"profile": LOW_TOKEN}}) == LOW_TOKEN
    assert parse_plan(
        PLAN.replace("loop: {", "agents: {profile: low-token}\nloop: {"), where="plan.md"
    )
    (option,) = [one for one in command.params if one.name == "profile"]
    assert list(option.type.choices) == list(PROFILES)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "given", "tools"),
    [
        (DEFAULT, (None, None, 60, False), {"Bash", "Read", "Edit", "Write"}),
        (LOW_TOKEN, ("claude-sonnet-5-5", "low", 40, True), {"Bash", "Read", "Write"}),
    ],
)
def test_a_session_gets_what_its_profile_says(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    given: tuple[Any, ...],
    tools: set[str],
) -> None:
    seen: list[tuple[Any, ...]] = []

    def look(spec: SessionSpec, **_: Any) -> SessionOutcome:
        an_hour = "ENABLE_PROMPT_CACHING_1H" in spec.folders.variables.read_text("utf-8")
        seen.append((spec.model, spec.effort, spec.max_turns, an_hour))
        assert set(spec.role.tools) == tools
        return SessionOutcome(outcome=SessionEnding.FAILED, detail="only looked at")

    monkeypatch.setattr(role_sessions, "run_session", look)
    scenario = write_scenario(tmp_path / "s.yaml", builder(1))
    gateway = open_gateway(project, project.plan(), {}, scenario=scenario)
    sandbox = choose(SandboxKind.NONE, required=False)
    run_loop(project, gateway, sandbox, profile=PROFILES[name])
    assert seen == [given]


def test_the_evidence_says_what_is_measured_and_what_is_projected() -> None:
    figures = json.loads(EVIDENCE.read_text("utf-8"))["figures"]
    dollars = {name for name in figures if "usd" in name}
    assert dollars
    assert all(name.startswith("projected_") for name in dollars)
    assert figures["low_token_bytes"] < figures["default_bytes"] < figures["stock_bytes"]
    assert figures["default_of_stock"] <= 0.35
    knobs = {name for name in figures if name.startswith("knob_")}
    assert len(knobs) == 7
