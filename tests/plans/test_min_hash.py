"""MinHash proposes nearly every pair that is alike, and few that are not."""

import random

from harness.plans.min_hash import Proposals


def pair(draw: random.Random, shared: int, own: int) -> tuple[list[str], list[str]]:
    names = [f"{draw.random():.9f}" for _ in range(shared + 2 * own)]
    return names[: shared + own], names[:shared] + names[shared + own :]


def found(shared: int, own: int) -> int:
    """Of 200 pairs with a similarity of shared / (shared + 2 own), those that were proposed."""
    draw = random.Random(shared)
    proposals, others = Proposals(), []
    for number in range(200):
        one, other = pair(draw, shared, own)
        proposals.add(number, one)
        others.append(other)
    return sum(number in proposals.of(other) for number, other in enumerate(others))


def test_what_is_alike_is_proposed() -> None:
    # 1 - (1 - s^8)^16: 0.947 of pairs at a similarity of 0.8, 0.9999 at 0.9.
    assert found(80, 10) >= 180
    assert found(180, 10) == 200


def test_what_is_not_is_rarely_proposed() -> None:
    assert found(30, 35) <= 4  # 0.3: one pair in 1,000


def test_equal_sets_in_any_order_are_one_and_the_numbers_rise() -> None:
    proposals = Proposals()
    for number in (4, 2):
        proposals.add(number, ["a", "b", "ü\ud800"])
    assert proposals.of(["ü\ud800", "b", "a"]) == [2, 4]
    assert proposals.of(["c"]) == []
