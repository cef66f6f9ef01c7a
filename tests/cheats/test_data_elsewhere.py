"""Held-out rows and labels elsewhere, labels in an input's bits, and scorers that give the truth
away: real where nobody looks, and never approved where somebody does."""

from pathlib import Path

import pytest

from harness.cheats.bench import run_bench
from harness.cheats.catalogue import ATTACKS
from harness.cheats.defences import structural_of

STOPPED_BY = ("row search", "input bits", "canonical inputs", "scorer probes")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_data_that_hold_what_is_judged_by_are_not_approved(tmp_path: Path) -> None:
    attacks = [item for item in ATTACKS if structural_of(item) in STOPPED_BY]
    assert len(attacks) == 15
    (document,) = run_bench([item.id for item in attacks], ["auto"], 1, tell=print, base=tmp_path)
    rows = {row["id"]: row for row in document["attacks"]}
    for attack in attacks:
        row = rows[attack.id]
        assert row["succeeded_undefended"], row
        assert row["caught"], row
        assert structural_of(attack) in row["caught_by"], row


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_rows_behind_their_hashes_make_a_score_that_validation_does_not_explain(
    tmp_path: Path,
) -> None:
    (document,) = run_bench(["held-out-behind-hashes"], ["auto"], 1, tell=print, base=tmp_path)
    (row,) = document["attacks"]
    assert row["succeeded_undefended"], row
    # The table is in every seed's weights: they are found alike for it, too.
    assert set(row["caught_by"]) == {"held-out", "seeds"}, row
