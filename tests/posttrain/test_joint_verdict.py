"""A PASS is what all seeds and all tries leave: where nothing is better, ten tries pass together as
rarely as one."""

from collections.abc import Callable

import numpy as np
import pytest

from harness.evaluation.comparison import holm
from harness.evaluation.intervals import mean_interval
from harness.posttrain.joint_verdict import (
    RowScores,
    compare_seeds,
    corrected,
    recipe_of,
    verdict_of,
)

ROWS, TRIES, FAMILIES = 80, 10, 400
ASKED = {"delta": 0.05, "quality": 0.65, "rows": 20}
Draw = Callable[[np.random.Generator], np.ndarray]


def scored(baseline: np.ndarray, candidate: np.ndarray) -> RowScores:
    names = [f"r{n}" for n in range(len(baseline))]
    return RowScores(
        baseline=dict(zip(names, baseline.tolist(), strict=True)),
        candidate=dict(zip(names, candidate.tolist(), strict=True)),
    )


def own_luck(draw: np.random.Generator) -> np.ndarray:
    """Three seeds that have nothing in common."""
    return draw.integers(0, 2, (3, ROWS)).astype(float)


def shared_luck(draw: np.random.Generator) -> np.ndarray:
    """A recipe whose seeds hardly differ: all its luck is that of the rows."""
    answers = np.repeat(own_luck(draw)[:1], 3, axis=0)
    flipped = draw.random((3, ROWS)) < 0.02
    return np.where(flipped, 1 - answers, answers)


def no_luck_of_seeds(draw: np.random.Generator) -> np.ndarray:
    return np.repeat(own_luck(draw)[:1], 3, axis=0)


def passes(baseline: np.ndarray, candidates: np.ndarray, tries: int) -> bool:
    delta = float(candidates.mean() - baseline.mean())
    if delta < ASKED["delta"]:
        return False
    joint = compare_seeds([scored(baseline, one) for one in candidates], tries=tries, seed=1)
    return verdict_of(delta, ROWS, ASKED, joint, tries)[0] == "PASS"


def one_model_passed_before(baseline: np.ndarray, candidate: np.ndarray) -> bool:
    """One seed, its own interval, no count of tries."""
    delta = candidate - baseline
    return bool(delta.mean() >= ASKED["delta"] and (mean_interval(delta) or (0, 0))[0] > 0)


@pytest.mark.parametrize("law", [own_luck, shared_luck, no_luck_of_seeds])
def test_the_best_of_ten_tries_without_any_effect_passes_at_most_as_one(law: Draw) -> None:
    draw = np.random.default_rng(1)
    passed = before = 0
    for _ in range(FAMILIES):
        baseline = draw.integers(0, 2, ROWS).astype(float)
        tries = [law(draw) for _ in range(TRIES)]
        passed += any(passes(baseline, one, k) for k, one in enumerate(tries, 1))
        before += any(one_model_passed_before(baseline, one[0]) for one in tries)
    assert passed / FAMILIES <= 0.05
    assert before / FAMILIES > 0.1, "the same draws, by one seed and without a count of tries"


def test_a_real_gain_passes_also_as_a_later_try() -> None:
    draw = np.random.default_rng(3)
    baseline = draw.integers(0, 2, ROWS).astype(float)
    better = np.where(draw.random((3, ROWS)) < 0.95, 1.0, 0.0)
    assert passes(baseline, better, 1)
    assert passes(baseline, better, 8)


def test_one_seed_that_carries_the_mean_passes_nothing() -> None:
    draw = np.random.default_rng(4)
    baseline = draw.integers(0, 2, ROWS).astype(float)
    lucky = np.stack([np.ones(ROWS), baseline, baseline])
    assert float(lucky.mean() - baseline.mean()) > 0.1
    assert not passes(baseline, lucky, 1)


def test_the_correction_spends_5_percent_in_all_and_is_never_less_than_holms() -> None:
    assert [corrected(0.001, tries) for tries in (1, 2, 3)] == pytest.approx([0.001, 0.003, 0.006])
    # One-sided, the level of each try; together at most 5% whatever their order and number.
    spent = sum(0.05 / 2 / (tries * (tries + 1) / 2) for tries in range(1, 1000))
    assert 0.0499 < spent < 0.05
    for tries in range(1, 8):
        assert corrected(0.004, tries) >= holm([*[1.0] * (tries - 1), 0.004])[-1] - 1e-12


def test_a_recipe_is_a_specification_without_seed_and_place() -> None:
    spec = {
        "seed": 1,
        "config_fingerprint": "a",
        "mode": "orpo",
        "model": {"id": "m", "path": "/here"},
        "dataset": {"path": "train.jsonl", "sha256": "d"},
        "benchmark": {"path": "held_out.jsonl", "sha256": "b"},
    }
    elsewhere = {"model": {"id": "m", "path": "/there"}, "seed": 2, "config_fingerprint": "b"}
    assert recipe_of(spec) == recipe_of(spec | elsewhere)
    assert recipe_of(spec) != recipe_of(spec | {"dataset": {"path": "x", "sha256": "e"}})
