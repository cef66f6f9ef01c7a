"""The longest stretch of epochs without a checkpoint, of honest runs of many shapes and of one that
never saved."""

import pytest

from harness.gates.artifacts import cadence
from harness.gates.run_evidence import Cadence
from tests.gates.evidence import evidence, run_evidence
from tests.metrics_rows import effective


def rows(epochs, saved, *, named=True, more=()):
    made = [{"event": "start"}]
    for epoch in epochs:
        made.append({"event": "epoch", "epoch": epoch, "metrics": {"loss": 1.0}})
        if epoch in saved:
            made.append(
                {"event": "checkpoint", "path": f"{epoch}", "epoch": epoch if named else None}
            )
    return [*made, *more]


def gap(made):
    found = Cadence()
    for row in made:
        found.look(row)
    for row in effective(made):
        found.take(row)
    return found.longest()


@pytest.mark.parametrize("named", [True, False])
def test_each_tenth_and_the_last(named):
    assert gap(rows(range(25), {9, 19, 24}, named=named)) == (0, 8)


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (rows(range(3), {0, 1, 2}), None),
        (rows(range(5), set()), (0, 4)),
        (rows(range(25), {0, 10, 20, 24}), (1, 9)),
        (rows(range(30), {29}), (0, 28)),
        (rows(range(9, 100, 10), {49, 99}), (9, 39)),
        (rows([], set()), None),
        (
            [
                *rows(range(12), {9}),
                {"event": "checkpoint", "path": "w", "initial": True, "epoch": 11},
            ],
            (0, 8),
        ),
    ],
)
def test_shapes(made, found):
    assert gap(made) == found


def test_what_an_earlier_attempt_saved_still_counts():
    first = rows(range(15), {9})
    second = [{"event": "attempt", "resumed_at": 10}, *rows(range(10, 25), {19, 24})[1:]]
    assert gap(first + second) == (0, 8)


@pytest.mark.parametrize(
    ("stretch", "every", "codes"),
    [
        ((0, 8), 10, []),
        ((0, 9), 10, []),  # saves at 10, 20, ... are ten apart, too
        ((0, 10), 10, ["checkpoint_cadence"]),
        ((0, 28), None, []),
        (None, 10, []),
    ],
)
def test_the_gate_asks_for_what_the_plan_says(stretch, every, codes):
    seen = evidence(checkpoint_every=every, runs=(run_evidence(1, without_checkpoint=stretch),))
    assert [found.code for found in cadence(seen)] == codes
