"""Does what validation said hold on held-out, by which nothing was chosen? Only whether it does is
told, never by how much.

Both ways: a score that is worse on held-out was found by trying on validation; one that is much
better knows held-out, wherever its rows may have stood, as themselves, as hashes or encrypted.
"""

import math
from collections.abc import Mapping
from typing import Any

from harness.domain.records import Objective
from harness.domain.statuses import Direction, Split
from harness.evaluation.scores import Score

MOST_GAP = 3.0
"""Standard errors by which one split may be better than the other: one honest look in 700 exceeds
it, when nothing was chosen by validation."""
MOST_SHIFT = 0.1
"""Of what validation gains over the trivial predictor: by so much held-out may be easier."""
_HALF_WIDTH = 1.96  # standard errors in half of a 95% interval
OVERFITTED, NOT_CONFIRMED = "validation_overfitted", "improvement_not_confirmed"
TOO_GOOD = "held_out_too_good"
CARRY_OVER = (OVERFITTED, NOT_CONFIRMED, TOO_GOOD)


def carried_over(
    objective: Objective,
    validation: Score | None,
    held_out: Score,
    comparison: Mapping[str, Any] | None,
    reference: Score | None,
    *,
    rows: Mapping[Split, int],
) -> tuple[str, ...]:
    """The one of CARRY_OVER that is found first, or nothing. `comparison` is that on validation,
    `reference` its reference's score on held-out, `rows` how many the splits have."""
    if validation is not None and overfitted(objective, validation, held_out):
        return (OVERFITTED,)
    if validation is not None and too_good(objective, validation, held_out, rows):
        return (TOO_GOOD,)
    better = comparison is not None and comparison["better"] is True
    # Only the sign is asked: a second test at the full level would keep hardly any small gain.
    worse = reference is not None and objective.gain(held_out.mean, reference.mean) < 0
    if better and worse:
        return (NOT_CONFIRMED,)
    return ()


def overfitted(objective: Objective, validation: Score, held_out: Score) -> bool:
    """Whether validation is better by more than MOST_GAP standard errors of the difference."""
    if validation.interval is None or held_out.interval is None:
        return False
    gap = objective.gain(validation.mean, held_out.mean)
    # Rows of both splits are independent: the variances add. Half a 95% interval is 1.96 errors.
    halves = [(high - low) / 2 for low, high in (validation.interval, held_out.interval)]
    return gap > MOST_GAP * math.hypot(*halves) / _HALF_WIDTH


def too_good(
    objective: Objective, validation: Score, held_out: Score, rows: Mapping[Split, int]
) -> bool:
    """Whether held-out is better by more than MOST_GAP standard errors of the difference and a
    shift of MOST_SHIFT."""
    if validation.interval is None:
        return False
    upwards = objective.direction is Direction.MAXIMIZE
    # Newcombe's method 10 (1998): of each interval the side that points to the other score. Of few
    # rows, or near the best score that there is, the two sides differ much.
    theirs = _side(validation.mean, validation.interval, up=upwards)
    # A script's perfect score has no interval. Few rows miss the long tail of losses, and then seem
    # sure. Were they drawn as validation's are, their mean is as uncertain as validation says.
    ours = 0.0
    if held_out.interval is not None:
        ours = _side(held_out.mean, held_out.interval, up=not upwards)
    low, high = validation.interval
    few = math.sqrt(rows[Split.VALIDATION] / rows[Split.HELD_OUT])
    noise = math.hypot(theirs, max(ours, few * (high - low) / 2))
    shift = 0.0
    if validation.baseline is not None:
        shift = MOST_SHIFT * max(0.0, objective.gain(validation.mean, validation.baseline))
    gap = objective.gain(held_out.mean, validation.mean)
    return gap > shift + MOST_GAP * noise / _HALF_WIDTH


def _side(mean: float, interval: tuple[float, float], *, up: bool) -> float:
    return max(0.0, interval[1] - mean if up else mean - interval[0])
