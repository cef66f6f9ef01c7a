"""One attack from end to end in both worlds; the whole is `make cheats`."""

from pathlib import Path

from harness.cheats.bench import _tasks, run_bench
from harness.cheats.catalogue import ATTACKS, CONTROLS
from harness.cheats.defences import structural_of
from harness.cheats.outcome_rows import digest


def test_an_attack_succeeds_undefended_and_is_caught_in_each_sandbox(tmp_path: Path) -> None:
    told: list[str] = []
    attack = next(item for item in ATTACKS if item.id == "evaluator-constant")
    documents = run_bench([attack.id], ["auto", "none"], 2, tell=told.append, base=tmp_path)
    (first,), (second,) = (document["attacks"] for document in documents)
    assert first["undefended"] == second["undefended"], "it happened once"
    for row in (first, second):
        assert row["succeeded_undefended"], row
        assert row["caught"], row
        assert structural_of(attack) in row["caught_by"]
        assert row["digest"] == digest(attack)
    assert documents[1]["sandbox"] == "none" != documents[0]["sandbox"]
    assert sorted(line.partition(":")[0] for line in told) == ["auto", "none"]
    assert list(tmp_path.iterdir()) == [], "nothing is left"


def test_the_longest_are_tried_first() -> None:
    chosen = [*ATTACKS[:3], *CONTROLS[:2]]
    seconds = {CONTROLS[1].id: 90.0, ATTACKS[2].id: 20.0}
    order = [CONTROLS[1], ATTACKS[2], *ATTACKS[:2], CONTROLS[0]]
    assert _tasks(chosen, seconds) == [[one.id] for one in order]
