"""Whether a gain on validation holds on held-out."""

import pytest

from harness.domain.grade import Grade
from harness.domain.statuses import Split
from harness.evaluation.carry_over import NOT_CONFIRMED, OVERFITTED, carried_over
from harness.evaluation.scores import Score
from tests.gates.evidence import MAXIMIZE, MINIMIZE


def score(mean: float, half: float = 0.02, split: Split = Split.HELD_OUT) -> Score:
    return Score(
        metric="accuracy",
        split=split,
        mean=mean,
        spread=None,
        n_seeds=3,
        values=(mean,) * 3,
        interval=(mean - half, mean + half),
        baseline=None,
        grade=Grade(),
    )


@pytest.mark.parametrize(
    ("mean", "found"),
    [
        (0.94, ()),  # as held-out
        (0.88, ()),  # better on held-out
        (0.975, ()),  # within three standard errors
        (0.999, (OVERFITTED,)),
    ],
)
def test_a_score_that_does_not_carry_over_is_found(mean: float, found: tuple[str, ...]) -> None:
    """Held-out is 0.94; with half widths of 0.02 on both three errors are 0.0433."""
    assert carried_over(MAXIMIZE, score(mean), score(0.94), None, None) == found


def test_the_gap_follows_the_plans_direction() -> None:
    """An error that is larger on validation than on held-out is no overfit."""
    assert carried_over(MINIMIZE, score(1.2), score(0.94), None, None) == ()
    assert carried_over(MINIMIZE, score(0.5), score(0.94), None, None) == (OVERFITTED,)


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
    assert carried_over(MAXIMIZE, None, score(0.94), {"better": better}, before) == found


def test_where_less_is_better_a_larger_error_than_the_parents_is_worse() -> None:
    better = {"better": True}
    assert carried_over(MINIMIZE, None, score(0.11), better, score(0.09)) == (NOT_CONFIRMED,)
    assert carried_over(MINIMIZE, None, score(0.11), better, score(0.12)) == ()
