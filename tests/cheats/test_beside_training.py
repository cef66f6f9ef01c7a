"""Attacks where no run is trained: real against an endpoint and a tool that ask nobody, and without
effect against ours."""

from pathlib import Path

import pytest

from harness.cheats import gateway_attacks, self_starts
from harness.cheats.attack import Attack, Channel
from harness.cheats.catalogue import ATTACKS
from harness.cheats.lab import LabProject


def attacks(channel: Channel) -> list[Attack]:
    return [item for item in ATTACKS if item.channel is channel]


@pytest.fixture
def place(tmp_path: Path) -> LabProject:
    made = LabProject(base=tmp_path, seed=1)
    made.write({"plan.md": "{}\n", "data/readme.txt": "rows\n"}, {})
    return made


@pytest.mark.parametrize("attack", attacks(Channel.GATEWAY), ids=lambda attack: attack.id)
def test_a_stray_request_has_its_effect_on_an_open_endpoint_alone(
    place: LabProject, attack: Attack
):
    assert gateway_attacks.open_to_all(place, attack).evidence["done"]
    assert not gateway_attacks.of_one_session(place, attack).evidence["done"]


@pytest.mark.parametrize("attack", attacks(Channel.SELF_START), ids=lambda attack: attack.id)
def test_a_planted_module_runs_in_a_tool_that_starts_itself_where_it_stands(
    place: LabProject, attack: Attack
):
    assert self_starts.by_others(place, attack).evidence["done"]
