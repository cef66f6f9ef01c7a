"""Attacks on training programs in their own world: each succeeds where nobody asks, and is stopped by
its own defence."""

from pathlib import Path

import pytest

from harness.cheats import program_world
from harness.cheats.attack import Attack, TrueScores
from harness.cheats.catalogue.training_programs import TRAINING_PROGRAMS
from harness.cheats.defences import fired
from harness.cheats.lab import LabProject, make_project
from harness.cheats.outcome_rows import SEED
from harness.settings import create_config

QUICK = ("program-judged-by-the-agent", "program-of-zeros")
NO_GAIN = TrueScores(score=0.5, parent=0.5)


@pytest.fixture
def place(tmp_path: Path) -> LabProject:
    return make_project(tmp_path, SEED)


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(one, id=one.id, marks=[] if one.id in QUICK else pytest.mark.slow)
        for one in TRAINING_PROGRAMS
    ],
)
def test_it_is_real_and_its_own_defence_stops_it(
    place: LabProject, tmp_path: Path, attack: Attack
) -> None:
    assert program_world.by_others(place, attack).evidence["done"]
    own = make_project(tmp_path / "own", SEED)
    create_config(own.root, name="lab", token="cafe")
    outcome = program_world.by_harness(own, attack)
    assert not outcome.evidence["done"], outcome.codes
    assert attack.structural in fired(attack, outcome, NO_GAIN)
