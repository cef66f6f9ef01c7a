"""The channel out of the vault, measured: labels are encoded in scores as strongly as it goes, over
a whole plan of looks, and decoded from the answers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
import pytest

from harness.domain.records import Objective
from harness.domain.statuses import Direction, Split, Tier
from harness.evaluation.answers import Frame, Word, word_for
from harness.evaluation.ladder import (
    TIER_ALONE_BITS,
    Answer,
    bits_for,
    gamma_bits,
)
from harness.evaluation.metrics import mae

BITS = 20.0
STEP = 0.02
LABELS = 64
"""A table has so many secret bits; each encoder tries for all of them."""
OBJECTIVE = Objective(
    metric="mae",
    direction=Direction.MINIMIZE,
    tiers={Tier.MUST: 0.5},
    seeds=3,
    queries=1_000_000,
)
TIERS = replace(OBJECTIVE, tiers={Tier.MUST: 0.5, Tier.SHOULD: 0.25})
VALIDATION = Frame(
    objective=OBJECTIVE,
    split=Split.VALIDATION,
    rows=LABELS,
    step=STEP,
    grid="g",
    best=None,
    centre=-25,
)


@dataclass
class Plan:
    """The looks of one plan: each is answered as `release` does, until one is refused."""

    frame: Frame
    spent: float = 0.0
    looks: int = 0

    def look(self, mean: float) -> Word | None:
        word = word_for(self.frame, mean, left=BITS - self.spent, better=None, code=None)
        if word is None:
            return None
        self.spent += word.bits
        self.looks += 1
        if word.told.cell is not None and self.frame.split is Split.VALIDATION:
            self.frame = replace(self.frame, best=word.told.cell)
        return word


def in_the_digits(labels: list[int], plan: Plan) -> list[int]:
    """predict adds 2^-k to row k's answer: an exact mean holds every label."""
    decoded: list[int] = []
    while (left := len(labels) - len(decoded)) > 0:
        digits = sum(label * 2.0 ** -(place + 1) for place, label in enumerate(labels[-left:]))
        word = plan.look(0.5 - digits * STEP * 8 - STEP * 8 * plan.looks)
        if word is None:
            break
        if word.told.cell is None:
            continue
        # Three digits survive the rounding to an eighth of the range.
        known = word.told.cell + 25 - 8 * (plan.looks - 1)
        decoded += [known >> 2 & 1, known >> 1 & 1, known & 1][:left]
    return decoded


def by_better_or_not(labels: list[int], plan: Plan) -> list[int]:
    """One label a look: better by a step where it is 1."""
    decoded: list[int] = []
    best = -25
    for label in labels:
        word = plan.look(-(best + label) * STEP)
        if word is None:
            break
        if word.told.cell is not None:
            decoded.append(word.told.cell - best)
            best = word.told.cell
        else:
            decoded.append(0)
    return decoded


def by_the_height(labels: list[int], plan: Plan) -> list[int]:
    """As many labels a look as its number has room for."""
    decoded: list[int] = []
    best, width = -25, 4
    while len(decoded) < len(labels):
        group = labels[len(decoded) : len(decoded) + width]
        height = 1 + int("".join(map(str, group)), 2)
        word = plan.look(-(best + height) * STEP)
        if word is None or word.told.cell is None:
            break
        told = word.told.cell - best - 1
        decoded += [int(digit) for digit in f"{told:0{len(group)}b}"][: len(group)]
        best = word.told.cell
    return decoded


def by_the_first_one(labels: list[int], plan: Plan) -> list[int]:
    """The cheapest word for runs of labels that are all 0: how many looks until one is better."""
    decoded: list[int] = []
    best = -25
    plan.look(-best * STEP)
    for label in labels:
        word = plan.look(-(best + label) * STEP)
        if word is None:
            break
        decoded.append(0 if word.told.answer is Answer.NOT_BETTER else 1)
        best += label
    return decoded


Encoder = Callable[[list[int], Plan], list[int]]


@pytest.mark.parametrize(
    "encoder", [in_the_digits, by_better_or_not, by_the_height, by_the_first_one]
)
def test_what_is_decoded_over_a_whole_plan_is_at_most_the_bound(encoder: Encoder) -> None:
    """Labels are coin tosses, so that each one is a bit. Counted are those before the first that is
    wrong."""
    random = np.random.default_rng(7)
    right = []
    for _ in range(300):
        labels = random.integers(0, 2, LABELS).tolist()
        plan = Plan(VALIDATION)
        decoded = encoder(labels, plan)
        assert plan.spent <= BITS
        same = [a == b for a, b in zip(decoded, labels, strict=False)]
        right.append(same.index(False) if False in same else len(same))
    # The encoders work, and on the average a table costs no more than the bound. A lucky one may
    # cost less.
    assert 3 < np.mean(right) <= BITS


@pytest.mark.parametrize("better", [[True] * 7, [False] * 7, [True, False] * 3 + [True]])
def test_twenty_bits_answer_the_eight_experiments_of_a_first_plan(better: list[bool]) -> None:
    """Whatever they come to: `harness init` writes both numbers."""
    frame, left = replace(VALIDATION, objective=TIERS), BITS
    score = 0.45
    for place, one in enumerate([True, *better]):
        score -= 0.05 if one else 0.0
        reserve = bits_for(7 - place)
        word = word_for(frame, score, left=left, better=one, code=None, reserve=reserve)
        assert word is not None, place
        assert (word.told.answer is not Answer.NOT_BETTER) is one
        frame = replace(frame, best=word.told.cell or frame.best)
        left -= word.bits
        if place == 0:
            left -= _kept_on_held_out(left, reserve)
    assert left >= 0


def _kept_on_held_out(left: float, reserve: float) -> float:
    """Bits of the look that keeps the first one."""
    held_out = replace(
        VALIDATION, objective=TIERS, split=Split.HELD_OUT, expected=True, centre=-20
    )
    word = word_for(held_out, 0.40, left=left, better=None, code=None, reserve=reserve)
    assert word is not None
    assert word.bits == TIER_ALONE_BITS
    return word.bits


def test_an_exact_score_carries_42_labels() -> None:
    """What the attack is worth undefended. A guess of (1 - w) / 2 is wrong by w more where the
    label is 1 than where it is 0, and the weights w are powers of 2."""
    labels = np.random.default_rng(7).integers(0, 2, 42).tolist()
    weights = [2.0 ** -(place + 1) for place in range(len(labels))]
    guesses = [(1 - weight) / 2 for weight in weights]
    score = fmean(mae.rows([float(label) for label in labels], {"prediction": guesses}))
    known = round((score * len(labels) - sum(guesses)) * 2 ** len(labels))
    assert [int(digit) for digit in f"{known:042b}"] == labels


def _score(look: list[int], table: tuple[int, ...]) -> float:
    """MAE of a look whose rows weigh as it says."""
    return 0.5 - sum(weight * label for weight, label in zip(look, table, strict=True)) * STEP / 4


def test_among_all_tables_of_eight_labels_the_answers_single_out_no_more_than_their_bits() -> None:
    """Exhaustive: over all 256 tables the mean information of a transcript is at most its mean
    length (Shannon's and Kraft's inequalities)."""
    tables = [tuple(int(digit) for digit in f"{number:08b}") for number in range(256)]
    random = np.random.default_rng(1)
    looks = [random.integers(-8, 9, 8).tolist() for _ in range(8)]
    groups: dict[tuple[Word | None, ...], int] = {}
    lengths: dict[tuple[Word | None, ...], float] = {}
    for table in tables:
        plan = Plan(VALIDATION)
        answers = tuple(plan.look(_score(look, table)) for look in looks)
        groups[answers] = groups.get(answers, 0) + 1
        lengths[answers] = plan.spent
    information = sum(
        count / len(tables) * np.log2(len(tables) / count) for count in groups.values()
    )
    length = sum(groups[answers] / len(tables) * lengths[answers] for answers in groups)
    assert 1 < information <= length <= BITS


def test_a_number_on_held_out_costs_what_its_distance_from_validation_costs() -> None:
    held_out = replace(VALIDATION, split=Split.HELD_OUT, expected=True)
    near = word_for(held_out, 0.49, left=BITS, better=None, code=None)
    far = word_for(held_out, 0.2, left=BITS, better=None, code=None)
    assert near is not None
    assert far is not None
    assert near.bits < far.bits
    assert gamma_bits(1) < far.bits
    few = word_for(held_out, 0.49, left=7.0, better=None, code=None)
    assert few is not None
    assert (few.told.answer, few.told.cell, few.tier) == (Answer.TIER_ONLY, None, Tier.MUST)
    assert word_for(held_out, 0.49, left=2.0, better=None, code=None) is None
