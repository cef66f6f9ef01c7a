"""When a checkpoint is due and what is better: the edges, the direction, values that are not
finite."""

import json
import math

import pytest

from harness.domain.statuses import Direction
from harness.errors import UsageError
from harness.training.cadence import Goal, goal_from_environment, should_checkpoint

MOST = Goal(metric="accuracy", direction=Direction.MAXIMIZE)
LEAST = Goal(metric="loss", direction=Direction.MINIMIZE)
NAN = math.nan
CASE_23 = [
    (0, 2.0, 7.4, 0.5),
    (100, 1.5, 4.5, 0.6),
    (200, 1.2, 3.3, 0.7),
    (300, 1.6, 5.0, 0.72),
    (400, 1.9, 6.7, 0.74),
]


def best_of(goal, values):
    best = None
    for place, value in values:
        if goal.better(value, best[1] if best else None):
            best = place, value
    return best[0] if best else None


@pytest.mark.parametrize(
    ("total", "every", "due"),
    [
        (25, 10, [9, 19, 24]),
        (20, 10, [9, 19]),
        (None, 10, [9, 19, 29]),
        (5, 10, [4]),
        (1, 10, [0]),
        (3, 1, [0, 1, 2]),
    ],
)
def test_due_each_time_and_at_the_end(total, every, due):
    assert [epoch for epoch in range(total or 30) if should_checkpoint(epoch, total, every)] == due


def test_the_best_is_always_due():
    assert should_checkpoint(3, 25, is_best=True)
    assert not should_checkpoint(3, 25, is_best=False)


@pytest.mark.parametrize(("epoch", "total", "every"), [(-1, 5, 10), (0, 0, 10), (0, 5, 0)])
def test_counts_that_cannot_be_are_named(epoch, total, every):
    with pytest.raises(UsageError, match="expected an epoch from 0"):
        should_checkpoint(epoch, total, every)


def test_case_23_each_metric_is_best_by_its_own_direction():
    by_place = {
        name: [(row[0], row[1 + at]) for row in CASE_23]
        for at, name in enumerate(("loss", "perplexity", "f1"))
    }
    assert [best_of(LEAST, by_place["loss"]), best_of(LEAST, by_place["perplexity"])] == [200, 200]
    assert best_of(MOST, by_place["f1"]) == 400


@pytest.mark.parametrize(
    ("values", "best"),
    [
        ([(100, NAN), (200, 0.61), (300, NAN), (400, 0.70)], 400),
        ([(100, NAN), (200, NAN)], None),
        ([], None),
        ([(100, math.inf), (200, 0.5), (300, -math.inf)], 200),
        ([(100, 0.5), (200, 0.5)], 100),
        ([(100, None), (200, 0.1)], 200),
    ],
)
def test_case_24_what_is_not_finite_beats_nothing(values, best):
    assert best_of(MOST, values) == best


def test_case_23_the_direction_is_the_plans_and_never_guessed():
    given = {"HARNESS_METRIC": "eval_wiki_loss", "HARNESS_DIRECTION": "minimize"}
    assert goal_from_environment(given) == Goal(
        metric="eval_wiki_loss", direction=Direction.MINIMIZE
    )
    for wrong in (
        {},
        {**given, "HARNESS_DIRECTION": "lower is better"},
        {"HARNESS_DIRECTION": "minimize"},
    ):
        with pytest.raises(UsageError, match="is unknown") as raised:
            goal_from_environment(wrong)
        assert raised.value.code == "direction_unknown", json.dumps(wrong)
