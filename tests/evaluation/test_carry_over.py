"""Whether a gain on validation holds on held-out, and held-out is not better than it can be."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.domain.grade import Grade
from harness.domain.records import Objective
from harness.domain.statuses import Split
from harness.evaluation.carry_over import NOT_CONFIRMED, OVERFITTED, TOO_GOOD, carried_over
from harness.evaluation.intervals import mean_interval, proportion_interval
from harness.evaluation.scores import Score
from tests.gates.evidence import MAXIMIZE, MINIMIZE

Interval = tuple[float, float] | None
SAME = {Split.VALIDATION: 400, Split.HELD_OUT: 400}


def score(mean: float, half: float = 0.02, baseline: float | None = None) -> Score:
    return scored(mean, (mean - half, mean + half), baseline)


def scored(mean: float, interval: Interval, baseline: float | None = None) -> Score:
    return Score(
        metric="accuracy",
        split=Split.HELD_OUT,
        mean=mean,
        spread=None,
        n_seeds=3,
        values=(mean,) * 3,
        interval=interval,
        baseline=baseline,
        grade=Grade(),
    )


def carried(
    objective: Objective,
    validation: Score | None,
    held_out: Score,
    better: bool = False,
    parent: Score | None = None,
) -> tuple[str, ...]:
    return carried_over(objective, validation, held_out, {"better": better}, parent, rows=SAME)


@pytest.mark.parametrize(
    ("mean", "found"),
    [
        (0.94, ()),  # as held-out
        (0.90, ()),  # better on held-out, within three standard errors
        (0.88, (TOO_GOOD,)),
        (0.975, ()),  # within three standard errors
        (0.999, (OVERFITTED,)),
    ],
)
def test_a_score_that_does_not_carry_over_is_found(mean: float, found: tuple[str, ...]) -> None:
    """Held-out is 0.94; with half widths of 0.02 on both three errors are 0.0433."""
    assert carried(MAXIMIZE, score(mean), score(0.94)) == found


def test_the_gap_follows_the_plans_direction() -> None:
    assert carried(MINIMIZE, score(0.96), score(0.94)) == ()
    assert carried(MINIMIZE, score(1.2), score(0.94)) == (TOO_GOOD,)
    assert carried(MINIMIZE, score(0.5), score(0.94)) == (OVERFITTED,)


def test_a_held_out_that_is_a_little_easier_is_not_too_good() -> None:
    """Ten thousand rows make any shift significant: a tenth of what was gained is allowed."""
    easier = score(0.92, half=0.002)
    assert carried(MAXIMIZE, score(0.90, half=0.002, baseline=0.5), easier) == ()
    assert carried(MAXIMIZE, score(0.90, half=0.002, baseline=0.89), easier) == (TOO_GOOD,)
    assert carried(MAXIMIZE, score(0.90, half=0.002), easier) == (TOO_GOOD,)


def test_what_has_no_interval_is_as_uncertain_as_the_other_says() -> None:
    """A script's score has none where all rows are right, or validation's where nothing is."""
    assert carried(MAXIMIZE, scored(0.0, None), score(0.99)) == ()
    assert carried(MAXIMIZE, score(0.97), scored(1.0, None)) == ()
    assert carried(MAXIMIZE, score(0.5), scored(1.0, None)) == (TOO_GOOD,)


Drawn = tuple[NDArray[Any], NDArray[Any] | None]
Draw = np.random.Generator


def right_or_wrong(draw: Draw, rows: int) -> Drawn:
    return (draw.random(rows) < 0.7).astype(float), None


def nearly_all_right(draw: Draw, rows: int) -> Drawn:
    return (draw.random(rows) < 0.97).astype(float), None


def in_groups(draw: Draw, rows: int) -> Drawn:
    """Ten groups, each with a difficulty of its own."""
    group = np.arange(rows) % 10
    return (draw.random(rows) < draw.beta(1.4, 0.6, 10)[group]).astype(float), group


def losses_in_groups(draw: Draw, rows: int) -> Drawn:
    group = np.arange(rows) % 10
    return np.abs(draw.normal(size=rows) / 2 + draw.normal(size=10)[group]), group


def losses_with_a_long_tail(draw: Draw, rows: int) -> Drawn:
    return np.exp(1.5 * draw.normal(size=rows)), None


def of(drawn: Drawn, objective: Objective) -> Score:
    rows, groups = drawn
    if objective is MAXIMIZE:
        return scored(float(rows.mean()), proportion_interval(rows, rows > 0.5, groups))
    return scored(float(rows.mean()), mean_interval(rows, groups))


@pytest.mark.parametrize("counts", [(15, 15), (400, 20), (2_000, 40), (40, 400), (200, 200)])
@pytest.mark.parametrize(
    ("make", "objective"),
    [
        (right_or_wrong, MAXIMIZE),
        (nearly_all_right, MAXIMIZE),
        (in_groups, MAXIMIZE),
        (losses_in_groups, MINIMIZE),
        (losses_with_a_long_tail, MINIMIZE),
    ],
)
def test_an_honest_held_out_is_too_good_in_less_than_one_of_a_hundred(
    make: Callable[[Draw, int], Drawn], objective: Objective, counts: tuple[int, int]
) -> None:
    """Tiny, grouped, with long tails: drawn as validation is, with no shift allowed."""
    draw, tries = np.random.default_rng(11), 500
    rows = dict(zip(Split, counts, strict=True))
    wrong = 0
    for _ in range(tries):
        validation, held_out = (of(make(draw, count), objective) for count in counts)
        found = carried_over(objective, validation, held_out, None, None, rows=rows)
        wrong += found == (TOO_GOOD,)
    assert wrong <= 0.01 * tries


@pytest.mark.parametrize(("share", "told"), [(0.0, 0.01), (0.5, 0.9), (1.0, 1.0)])
def test_a_model_that_knows_the_labels_of_held_out_is_too_good(share: float, told: float) -> None:
    """It is right on three of four of 400 rows, and on `share` of the rest of held-out too."""
    draw, tries = np.random.default_rng(12), 200
    found = 0
    for _ in range(tries):
        before, after = (draw.random(400) < 0.75, draw.random(400) < 0.75 + 0.25 * share)
        scores = [of((rows.astype(float), None), MAXIMIZE) for rows in (before, after)]
        found += carried(MAXIMIZE, scores[0], scores[1]) == (TOO_GOOD,)
    assert found >= told * tries if share else found <= told * tries


@pytest.mark.parametrize(
    ("better", "parent", "found"),
    [
        (True, 0.95, (NOT_CONFIRMED,)),
        (True, 0.94, ()),  # as good as its parent
        (True, None, ()),  # nobody looked at the parent's
        (False, 0.95, ()),  # it was no improvement on validation either
    ],
)
def test_an_improvement_on_validation_is_not_worse_than_its_parent_on_held_out(
    better: bool, parent: float | None, found: tuple[str, ...]
) -> None:
    before = None if parent is None else score(parent)
    assert carried(MAXIMIZE, None, score(0.94), better, before) == found


def test_where_less_is_better_a_larger_error_than_the_parents_is_worse() -> None:
    assert carried(MINIMIZE, None, score(0.11), True, score(0.09)) == (NOT_CONFIRMED,)
    assert carried(MINIMIZE, None, score(0.11), True, score(0.12)) == ()
