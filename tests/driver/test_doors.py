"""Which door a loop gets, and what a live one needs."""

from pathlib import Path

import pytest
from toy_project import builder, write_scenario

from harness.driver.doors import LIVE_RETRIES, SCRIPTED_RETRIES, is_scripted, open_door, retries
from harness.errors import RefusedError, UsageError
from harness.model_door.door import Door
from harness.model_door.live import Live
from harness.model_door.meter import Meter
from harness.project.context import Project


def test_a_scenario_needs_neither_key_nor_budget(project: Project, tmp_path: Path) -> None:
    door = open_door(project, project.plan(), {}, scenario=write_scenario(tmp_path / "s.yaml", builder(1)))
    assert is_scripted(door)
    assert retries(door) == SCRIPTED_RETRIES


def test_a_live_door_needs_a_budget_in_the_plan(project: Project) -> None:
    with pytest.raises(RefusedError, match=r"budget\.usd"):
        open_door(project, project.plan(), {"ANTHROPIC_API_KEY": "k"})


def test_a_scenario_is_not_recorded(project: Project, tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "s.yaml", builder(1))
    with pytest.raises(UsageError, match="exclude each other"):
        open_door(project, project.plan(), {}, scenario=scenario, record=tmp_path / "r.yaml")


def test_a_live_endpoint_is_asked_again_more_patiently() -> None:
    door = Door(Live(upstream="http://127.0.0.1:9", key="k", meter=Meter(budget_usd=1.0)))
    assert not is_scripted(door)
    assert retries(door) == LIVE_RETRIES
