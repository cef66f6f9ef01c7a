"""The tiers of a first plan are no rounding away from the score that they start from."""

import pytest

from harness.domain.metrics import METRICS
from harness.domain.statuses import Direction
from harness.evaluation.trivial import first_tiers, rounded


@pytest.mark.parametrize(
    ("metric", "trivial", "tiers"),
    [
        ("accuracy", 0.998, {"must": 0.9985, "should": 0.999}),
        ("accuracy", 0.9999981, {"must": 0.99999858, "should": 0.99999905}),
        ("accuracy", 1 / 3, {"must": 0.5, "should": 0.667}),
        ("accuracy", None, {"must": 0.25, "should": 0.5}),
        ("accuracy", 1.0, {"must": 1.0}),
        ("mae", 12345.678, {"must": 9260.0, "should": 6170.0}),
        ("mae", 0.0, {"must": 0.0}),
        ("r2", -0.0001, {"must": 0.25, "should": 0.5}),
    ],
)
def test_must_is_out_of_reach_of_the_predictor_that_knows_no_row(
    metric: str, trivial: float | None, tiers: dict[str, float]
) -> None:
    found = first_tiers(metric, trivial)
    assert found == tiers
    if trivial is None or len(found) == 1:
        return
    sign = 1 if METRICS[metric].direction is Direction.MAXIMIZE else -1
    assert sign * trivial < sign * found["must"] < sign * found["should"]
    assert sign * rounded(metric, trivial) < sign * found["must"]
