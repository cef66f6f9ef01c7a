"""What rows say of a resume, whatever the training says of itself."""

import random
from typing import Any

import pytest

from harness.artifacts.resume_check import ResumeCheck

EXACT = {"event": "resume", "exact": True, "missing": []}


def epochs(first: int, last: int, *, shift: float = 0.0, step: int = 10, **more: Any) -> list:
    return [
        {
            "event": "epoch",
            "epoch": n,
            "step": step * (n + 1),
            "metrics": {"loss": 1 / (n + 1) + shift, "steps_per_second": random.random()},
        }
        | more
        for n in range(first, last)
    ]


def found(*rows: dict[str, Any]) -> ResumeCheck:
    check = ResumeCheck()
    for row in rows:
        check.take(row)
    return check


def resumed(after: list, *, at: int | None = 8, says: dict[str, Any] | None = None) -> str | None:
    says = EXACT if says is None else says
    attempt = {"event": "attempt", "resumed_at": at}
    return found({"event": "start"}, *epochs(0, 10), attempt, says, *after).newest


@pytest.mark.parametrize("after", [epochs(8, 20), epochs(10, 20), epochs(0, 20), epochs(8, 9), []])
def test_a_resume_that_goes_on_as_before_is_exact(after: list) -> None:
    assert resumed(after) is None


def test_what_the_training_names_is_told_and_what_it_does_not_say_too() -> None:
    said = {"event": "resume", "exact": False, "missing": ["optimizer", "data order"]}
    assert resumed(epochs(8, 12), says=said) == "optimizer, data order not restored"
    assert "does not say" in str(resumed(epochs(8, 12), says=said | {"missing": []}))


def test_a_row_that_is_logged_again_with_another_value() -> None:
    told = resumed(epochs(8, 12, shift=1e-9))
    assert told == "loss of epoch 8 is 0.111111112 now, and was 0.111111111"
    assert "learning rate" in str(
        found(
            *epochs(0, 5, learning_rate=0.1),
            {"event": "attempt"},
            EXACT,
            *epochs(3, 5, learning_rate=0.2),
        ).newest
    )


def test_counters_that_jump_or_begin_anew() -> None:
    assert resumed(epochs(14, 18)) == "its epochs jump from 9 to 14"
    again = [row | {"step": row["step"] - 100} for row in epochs(10, 14)]
    assert resumed(again) == "its steps go back from 100 to 10 while epochs go on"
    assert resumed([row | {"step": row["step"] + 500} for row in epochs(10, 14)]) == (
        "its steps jump from 100 to 610"
    )


@pytest.mark.parametrize("odd", [[], {"a": 1}, "nine", None, True, 10**400])
def test_a_row_whose_place_is_anything_is_compared(odd: Any) -> None:
    after = [row | {"epoch": odd, "step": odd} for row in epochs(10, 14)]
    check = found(*epochs(0, 10), *after[:1], {"event": "attempt"}, EXACT, *after)
    assert check.count <= 1


def test_a_loss_that_does_not_go_on() -> None:
    assert str(resumed(epochs(10, 14, shift=2.0))).startswith("loss does not go on: 0.1 before")
    drawn = random.Random(1)
    noisy = [
        {"event": "epoch", "epoch": n, "metrics": {"loss": drawn.gauss(1, 0.1)}} for n in range(99)
    ]
    for stop in range(10, 90):
        check = found(*noisy[:stop], {"event": "attempt"}, EXACT, *noisy[stop:])
        assert check.newest is None, stop


def test_each_inexact_resume_is_counted_and_the_newest_told() -> None:
    bad = {"event": "resume", "exact": False, "missing": ["a"]}
    rows = [*epochs(0, 4), {"event": "attempt"}, bad, *epochs(4, 6), {"event": "attempt"}, EXACT]
    check = found(*rows, *epochs(6, 9))
    assert (check.count, check.newest) == (1, "a not restored")
    check = found(*rows, *epochs(20, 22))
    assert (check.count, check.newest) == (2, "its epochs jump from 5 to 20")


def test_memory_does_not_follow_the_rows() -> None:
    check = found(*epochs(0, 3000))
    assert len(check._recent) + len(check._first) < 100
