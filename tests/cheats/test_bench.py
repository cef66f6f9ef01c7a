"""One attack from end to end in both worlds; the whole is `make cheats`."""

from pathlib import Path

from harness.cheats.bench import run_bench
from harness.cheats.catalogue import ATTACKS
from harness.cheats.defences import structural_of
from harness.cheats.outcome_rows import digest


def test_an_attack_succeeds_undefended_and_is_caught(tmp_path: Path) -> None:
    told: list[str] = []
    attack = next(item for item in ATTACKS if item.id == "evaluator-constant")
    (document,) = run_bench([attack.id], ["auto"], 2, tell=told.append, base=tmp_path)
    (row,) = document["attacks"]
    assert row["succeeded_undefended"], row
    assert row["caught"], row
    assert structural_of(attack) in row["caught_by"]
    assert row["digest"] == digest(attack)
    assert len(told) == 1
    assert list(tmp_path.iterdir()) == [], "nothing is left"
