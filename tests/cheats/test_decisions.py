"""Attacks on what a person decides by, and on what predict imports: each is real without defences,
and its own structure stops it."""

from pathlib import Path

import pytest

from harness.cheats.attack import Attack
from harness.cheats.bench import run_bench
from harness.cheats.catalogue.decisions import DECISIONS
from harness.cheats.catalogue.registered import REGISTERED
from harness.cheats.defences import structural_of

LIBRARY = next(one for one in REGISTERED if one.id == "library-of-predict-exchanged")


@pytest.mark.slow
@pytest.mark.parallel
@pytest.mark.parametrize("attack", DECISIONS, ids=lambda attack: attack.id)
def test_its_own_structure_stops_it(tmp_path: Path, attack: Attack) -> None:
    assert caught_by(attack, "auto", tmp_path) == [structural_of(attack)]


@pytest.mark.slow
@pytest.mark.parallel
def test_an_exchanged_library_is_found_where_no_sandbox_keeps_the_agent_from_it(
    tmp_path: Path,
) -> None:
    assert caught_by(LIBRARY, "none", tmp_path) == ["library record"]


def caught_by(attack: Attack, sandbox: str, base: Path) -> list[str]:
    (document,) = run_bench([attack.id], [sandbox], 2, tell=lambda line: None, base=base)
    (row,) = document["attacks"]
    assert row["succeeded_undefended"], row
    assert row["caught"], row
    by: list[str] = row["caught_by"]
    return by
