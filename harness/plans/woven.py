"""The label written between the lines: the exclusive or of some bits, digits or ways of writing.

On one part of the rows a linear system over GF(2) is solved: which planes, added without carry,
give a bit of the label. On the rows that were left out the answer is tried. Under the null that
rows say nothing about each other, agreement there is hypergeometric (Fisher's exact test), whatever
was chosen before, so a table that says nothing stays quiet. Some wrong rows are borne: the system
is solved from several draws of rows (information sets, Prange 1962).
"""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.plans.bit_planes import Bits, Plane, planes

REFUSED = 0.6
"""Skill from which fine planes are a refusal: a label that is wrong in each fifth row is one."""
BEYOND_CHANCE = 1e-9
"""After Bonferroni: the most that chance may do."""
LEAST_ROWS = 60
MOST_ROWS = 8_000
_LEAST_TRIED, _MOST_TRIED = 40, 2_000
_LEAST_ERRORS = 10
_MOST_PLANES = 1_024
_ALONE = 32
"""Columns up to which each is solved for by itself, with all its planes."""
_SMALL, _DRAWS, _FEW_DRAWS = 160, 8, 2
_SPARE = 16
"""Equations beyond the planes, for those that repeat."""
_BOUND = 3
"""Columns that are named."""


Way = Callable[[Bits, Bits], Bits]
"""(planes, bits of the label) of the rows that are known -> weights of the planes."""


@dataclass(frozen=True, kw_only=True)
class Woven:
    columns: tuple[str, ...]
    levels: tuple[str, ...]
    parts: int
    fine: bool
    """Whether without its fine planes it says little."""
    skill: float
    """The share of the trivial predictor's errors on a bit of the label that it removes."""

    @property
    def words(self) -> str:
        shown = ", ".join(map(repr, self.columns[:_BOUND]))
        more = f" and {len(self.columns) - _BOUND} more" if len(self.columns) > _BOUND else ""
        level = self.levels[0] if len(self.levels) == 1 else "bits, digits or ways of writing"
        both = "" if self.parts == 1 else "exclusive or of "
        return f"the {both}{level} of {shown}{more}"


def label_bits(
    target: NDArray[np.float64],
    classes: int,
) -> Bits:
    """Bits of class codes and whether it is each of few classes, (n, k); of a measured label the
    two upper bits of its rank."""
    if not classes:
        ranks = np.argsort(np.argsort(target, kind="stable"), kind="stable")
        codes, width = ranks * 4 // len(target), 2
    else:
        codes = target.astype(np.int64)
        width = max(1, (classes - 1).bit_length())
    told = [(codes >> place) & 1 for place in range(width)]
    if 2 < classes <= 8:
        told += [codes == one for one in range(classes)]
    return np.stack(told, axis=1).astype(np.uint8)


def woven(
    columns: Sequence[tuple[str, NDArray[Any]]],
    target: NDArray[np.float64],
    classes: int,
) -> list[Woven]:
    """The best of fine planes and the best of all planes, where they say a bit of the label beyond
    chance; the rows are in an order that says nothing."""
    n = min(len(target), MOST_ROWS)
    if n < LEAST_ROWS:
        return []
    answers = label_bits(target[:n], classes)
    of_column = {name: planes(name, values[:n]) for name, values in columns}
    tried = min(
        max(
            n // 4,
            _LEAST_TRIED,
        ),
        _MOST_TRIED,
    )
    found: list[Woven] = []
    for fine in (True, False):
        chosen = {
            name: [plane for plane in of if plane.fine or not fine]
            for name, of in of_column.items()
        }
        groups = list(_groups(chosen, most=min(_MOST_PLANES, (n - tried) * 3 // 4)))
        every = _lowest([plane for of in chosen.values() for plane in of], _MOST_PLANES)
        ways = [(group, _solved) for group in groups] + [(every, _paired)] * bool(every)
        chances = BEYOND_CHANCE / max(1, len(ways) * answers.shape[1])
        told = [
            _told(
                group,
                answers,
                tried,
                chances,
                way,
            )
            for group, way in ways
        ]
        known = [one for one in told if one is not None]
        # Of equal ones the one with the fewest parts.
        best = max(known, key=lambda one: (one.skill, -one.parts), default=None)
        if best is not None and best.words not in [one.words for one in found]:
            found.append(best)
    return found


def _lowest(
    group: list[Plane],
    most: int,
) -> list[Plane]:
    return sorted(group, key=lambda plane: plane.low)[:most]


def _groups(
    of_column: Mapping[str, list[Plane]],
    most: int,
) -> Iterator[list[Plane]]:
    """Each column by itself, the same place of all columns, and all together; the lowest first
    where they are too many to solve for."""
    levels: dict[str, list[Plane]] = defaultdict(list)
    for of in of_column.values():
        for plane in of:
            levels[plane.level].append(plane)
    every = [plane for of in of_column.values() for plane in of]
    alone = of_column.values() if len(of_column) <= _ALONE else ()
    for group in (*alone, *levels.values(), every):
        if group:
            yield _lowest(
                group,
                most,
            )


def _told(
    group: list[Plane],
    answers: Bits,
    tried: int,
    chances: float,
    way: Way,
) -> Woven | None:
    one = np.ones(len(answers), dtype=np.uint8)
    told = np.stack([one, *(plane.bits for plane in group)], axis=1)
    weights = way(told[tried:], answers[tried:])
    guesses = _product(
        told[:tried],
        weights,
    )
    sizes = np.array([True, *(not plane.fine for plane in group)])
    coarse = _product(told[:tried], weights * sizes[:, None].astype(np.uint8))
    best: Woven | None = None
    for number in range(answers.shape[1]):
        truth, guess = answers[:tried, number], guesses[:, number]
        errors = min(int(truth.sum()), tried - int(truth.sum()))
        if errors < _LEAST_ERRORS or chance(truth, guess) > chances:
            continue
        skill = 1 - int((truth != guess).sum()) / errors
        without = 1 - int((truth != coarse[:, number]).sum()) / errors
        if best is None or skill > best.skill:
            parts = [
                plane
                for plane, used in zip(
                    group,
                    weights[1:, number],
                    strict=True,
                )
                if used
            ]
            best = Woven(
                columns=tuple(dict.fromkeys(plane.column for plane in parts)),
                levels=tuple(dict.fromkeys(plane.level for plane in parts)),
                parts=len(parts),
                fine=without < skill / 2,
                skill=skill,
            )
    return best


def _solved(
    told: Bits,
    answers: Bits,
) -> Bits:
    """For each column of `answers` the weights that agree with most rows, (planes, k)."""
    n, width = told.shape
    draw = np.random.default_rng(0)
    best = np.zeros((width, answers.shape[1]), dtype=np.uint8)
    least = np.full(answers.shape[1], n + 1)
    for _ in range(_DRAWS if width <= _SMALL else _FEW_DRAWS):
        rows = draw.permutation(n)[: width + _SPARE]
        weights = _solution(told[rows], answers[rows])
        wrong = (
            _product(
                told,
                weights,
            )
            != answers
        ).sum(axis=0)
        better = wrong < least
        best[:, better], least = weights[:, better], np.minimum(wrong, least)
        if not least.any():
            break
    return best


def _paired(
    told: Bits,
    answers: Bits,
) -> Bits:
    """The one plane, or the exclusive or of two, that goes best with each column of `answers`,
    however many rows are wrong."""
    signs = 1 - 2 * told.astype(np.float32)
    weights = np.zeros((told.shape[1], answers.shape[1]), dtype=np.uint8)
    # A matrix by its own transpose is half the work.
    whole = signs.T @ signs
    for number in range(answers.shape[1]):
        zeros = answers[:, number] == 0
        of_zeros, mean = signs[zeros], 2 * np.float32(zeros.mean()) - 1
        # The first plane is one in all rows: with it a pair is a plane alone.
        together = 2 * (of_zeros.T @ of_zeros) - (1 + mean) * whole
        np.fill_diagonal(together, 0)
        first, second = divmod(int(np.abs(together).argmax()), told.shape[1])
        weights[[first, second], number] = 1
        weights[0, number] ^= together[first, second] < 0
    return weights


def _solution(
    told: Bits,
    answers: Bits,
) -> Bits:
    """Of the first rows that do not follow from each other; planes that are not needed have weight
    0."""
    width, k = told.shape[1], answers.shape[1]
    system = np.packbits(np.concatenate([told, answers], axis=1), axis=1)
    free = np.ones(len(system), dtype=bool)
    pivots: list[tuple[int, int]] = []
    for place in range(width):
        byte, mask = place // 8, np.uint8(128 >> place % 8)
        having = (system[:, byte] & mask) != 0
        row = int((having & free).argmax())
        if not (having[row] and free[row]):
            continue
        having[row] = False
        system[having] ^= system[row]
        free[row] = False
        pivots.append((place, row))
    right = np.unpackbits(system, axis=1)[:, width : width + k]
    weights = np.zeros((width, k), dtype=np.uint8)
    for place, row in pivots:
        weights[place] = right[row]
    return weights


def _product(
    told: Bits,
    weights: Bits,
) -> Bits:
    # Sums of at most some thousand ones are exact in single precision.
    sums = told.astype(np.float32) @ weights.astype(np.float32)
    return (sums.astype(np.int64) & 1).astype(np.uint8)


def chance(
    truth: Bits,
    guess: Bits,
) -> float:
    """How likely so many ones, or more, fall together when the guess says nothing: Fisher's exact
    test, one-sided."""
    n, ones, said = len(truth), int(truth.sum()), int(guess.sum())
    both = int((truth & guess).sum())
    logs = _log_factorials(n)
    together = np.arange(max(both, said + ones - n, 0), min(ones, said) + 1)
    likely = (
        _log_choose(logs, ones, together)
        + _log_choose(logs, n - ones, said - together)
        - _log_choose(logs, n, said)
    )
    return min(1.0, float(np.exp(likely).sum()))


@functools.lru_cache(maxsize=4)
def _log_factorials(n: int) -> NDArray[np.float64]:
    """Of 0 to n."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, n + 1)))])


def _log_choose(logs: NDArray[np.float64], n: int, k: Any) -> Any:
    return logs[n] - logs[k] - logs[n - k]
