"""Does what validation said hold on held-out, by which nothing was chosen? Only whether it does is
told, never by how much."""

import math
from collections.abc import Mapping
from typing import Any

from harness.domain.records import Objective
from harness.domain.statuses import Direction
from harness.evaluation.scores import Score

MOST_GAP = 3.0
"""Standard errors by which validation may be better than held-out: one honest look in 700 exceeds
it, when nothing was chosen by validation."""
_HALF_WIDTH = 1.96  # standard errors in half of a 95% interval
OVERFITTED, NOT_CONFIRMED = "validation_overfitted", "improvement_not_confirmed"
CARRY_OVER = (OVERFITTED, NOT_CONFIRMED)


def carried_over(
    objective: Objective,
    validation: Score | None,
    held_out: Score,
    comparison: Mapping[str, Any] | None,
    parent: Score | None,
) -> tuple[str, ...]:
    """The first of CARRY_OVER that is found, or nothing. `comparison` is that on validation,
    `parent` the parent's score on held-out."""
    if validation is not None and overfitted(objective, validation, held_out):
        return (OVERFITTED,)
    better = comparison is not None and comparison["better"] is True
    # Only the sign is asked: a second test at the full level would keep hardly any small gain.
    if better and parent is not None and objective.gain(held_out.mean, parent.mean) < 0:
        return (NOT_CONFIRMED,)
    return ()


def overfitted(objective: Objective, validation: Score, held_out: Score) -> bool:
    """Whether validation is better by more than MOST_GAP standard errors of the difference."""
    if validation.interval is None or held_out.interval is None:
        return False
    sign = 1 if objective.direction is Direction.MAXIMIZE else -1
    gap = sign * (validation.mean - held_out.mean)
    # Rows of both splits are independent: the variances add. Half a 95% interval is 1.96 errors.
    halves = [(high - low) / 2 for low, high in (validation.interval, held_out.interval)]
    return gap > MOST_GAP * math.hypot(*halves) / _HALF_WIDTH
