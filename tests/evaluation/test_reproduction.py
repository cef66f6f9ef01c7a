"""Whether a second training gives the same score, by the noise of the seeds."""

import pytest

from harness.domain.records import Objective
from harness.domain.statuses import Direction
from harness.evaluation.reproduction import Outcome, judged

OBJECTIVE = Objective(
    metric="accuracy", direction=Direction.MAXIMIZE, tiers={}, seeds=3, queries=3
)


@pytest.mark.parametrize(
    ("again", "outcome"),
    [
        ({1: 0.90, 2: 0.91, 3: 0.92}, Outcome.EXACT),
        ({1: 0.91, 2: 0.90, 3: 0.92}, Outcome.REPRODUCED),
        ({1: 0.80, 2: 0.81, 3: 0.82}, Outcome.DIFFERS),
        ({1: 0.99, 2: 0.98, 3: 0.99}, Outcome.DIFFERS),
        ({1: 0.90, 2: 0.91}, Outcome.INCONCLUSIVE),
        ({}, Outcome.INCONCLUSIVE),
    ],
)
def test_the_noise_of_the_seeds_decides(again: dict[int, float], outcome: Outcome) -> None:
    result = judged({1: 0.90, 2: 0.91, 3: 0.92}, again, OBJECTIVE)
    assert result.outcome is outcome
    assert result.why


def test_two_seeds_tell_nothing_but_equality() -> None:
    assert judged({1: 0.9, 2: 0.8}, {1: 0.9, 2: 0.8}, OBJECTIVE).outcome is Outcome.EXACT
    assert judged({1: 0.9, 2: 0.8}, {1: 0.9, 2: 0.7}, OBJECTIVE).outcome is Outcome.INCONCLUSIVE
