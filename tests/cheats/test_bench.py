"""One attack from end to end in both worlds; the whole is `make cheats`."""

from pathlib import Path

from harness.cheats.bench import run_bench

IDS = ("evaluator-constant",)


def test_an_attack_succeeds_undefended_and_is_caught(tmp_path: Path) -> None:
    told: list[str] = []
    document = run_bench(IDS, "auto", 2, tell=told.append, base=tmp_path)
    (row,) = document["attacks"]
    assert row["succeeded_undefended"], row
    assert row["caught"], row
    assert "frozen scorer" in row["alone"]
    assert len(told) == 1
    assert list(tmp_path.iterdir()) == [], "nothing is left"
