"""Seeds are the plan's: repeatable, distinct, of 31 bits."""

from harness.plans.approved import seeds_for


def test_seeds_are_distinct_and_repeatable() -> None:
    seeds = seeds_for("ab" * 32, 500)
    assert seeds == seeds_for("ab" * 32, 500)
    assert len(set(seeds)) == 500
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert seeds[:3] == seeds_for("ab" * 32, 3)
    assert not set(seeds) & set(seeds_for("cd" * 32, 500))
