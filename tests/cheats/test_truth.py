"""The lab's own foundations: the law of the data, the predicates, and what belongs to which defence."""

import numpy as np
import pytest

from harness.cheats.attack import Attack, Channel, Kind, Outcome, Truth, below_plan, done, inflated, kept_not_better
from harness.cheats.catalogue import ATTACKS, CONTROLS
from harness.cheats.defences import DEFENCES, caught, defence_of, fired, structural_of
from harness.cheats.problem import draw, fresh, split
from harness.gates.findings import FINDINGS, finding, outcome_of

TRUE = Truth(score=0.6, parent=0.6)


def test_rows_follow_from_their_seed_and_splits_share_none():
    assert np.array_equal(split("train", 3).x, split("train", 3).x)
    ids = [row for name in ("train", "validation", "held_out") for row in split(name, 3).id.tolist()]
    ids += fresh(3).id.tolist()
    assert len(ids) == len(set(ids))


def test_the_law_is_what_it_says():
    rows = draw(60_000, 5)
    means = np.stack([rows.x[rows.y == label].mean(0) for label in range(3)])
    wanted = np.where(np.arange(9)[None] % 3 == np.arange(3)[:, None], 0.9, 0.0)
    assert np.abs(means - wanted).max() < 0.04


def test_predicates_look_at_the_truth():
    assert inflated(Outcome(believed=0.7), TRUE)
    assert not inflated(Outcome(believed=0.65), TRUE)
    assert not inflated(Outcome(believed=None, recomputed=0.99), TRUE)
    assert kept_not_better(Outcome(kept=True), TRUE)
    assert not kept_not_better(Outcome(kept=True), Truth(score=0.7, parent=0.6))
    assert below_plan(Outcome(believed=0.5), Truth(score=0.3, parent=0.6))
    assert done(Outcome(evidence={"done": True}), TRUE)


def attack(**more: object) -> Attack:
    given = {"id": "x", "area": "x", "mechanism": "x", "source": "x", "kind": Kind.TRAINING, **more}
    return Attack(**given)  # type: ignore[arg-type]


def test_an_effect_that_nobody_names_is_not_caught():
    reach = attack(success=done, channel=Channel.REACH)
    happened = Outcome(evidence={"done": True})
    assert not caught(reach, happened, TRUE)
    assert caught(reach, Outcome(codes=("tampering_noticed",), evidence={"done": True}), TRUE)
    assert not caught(reach, Outcome(codes=("not_better_than_the_parent",), evidence={"done": True}), TRUE)
    assert fired(reach, Outcome(evidence={"done": False}), TRUE) == ["cage"]


def test_what_holds_alone_is_asked_with_every_finding_thrown_away():
    forged = attack(channel=Channel.METRICS)
    assert fired(forged, Outcome(codes=("metrics_changed",), recomputed=0.6), TRUE) == ["recomputation", "run link"]
    assert fired(forged, Outcome(codes=("metrics_changed",), recomputed=0.99), TRUE) == ["run link"]


def test_following_codes_count_only_alone():
    item = attack()
    assert "seeds" not in fired(item, Outcome(codes=("scorer_changed", "seeds_outstanding"), recomputed=0.99), TRUE)
    assert "seeds" in fired(item, Outcome(codes=("seeds_outstanding",), recomputed=0.99), TRUE)


def test_ids_are_unique_and_every_structure_is_a_defence():
    ids = [item.id for item in (*ATTACKS, *CONTROLS)]
    assert len(ids) == len(set(ids))
    assert {structural_of(item) for item in ATTACKS} <= DEFENCES.keys()
    assert len(ATTACKS) >= 60
    assert len(CONTROLS) >= 20


@pytest.mark.parametrize("code", sorted(FINDINGS))
def test_every_blocking_finding_belongs_to_a_defence(code: str):
    if outcome_of(finding(code, "x")) != "PASS" and code != "isolation_absent":
        assert defence_of(code) in DEFENCES
