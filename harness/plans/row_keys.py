"""Keys of rows that stay the same when a row is written in another form.

Signs are left out. A column that holds rounded numbers is recognized by them (at most 5 decimals or
significant digits), and what it is compared with is rounded as it is; other numbers are compared as
float32. The key of a row is a sum over its numbers: with their places, or without, so that it does
not depend on the order of the columns.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Keys = NDArray[np.uint64]
Grid = tuple[int, int]
"""(decimals, significant digits) of a column; NONE where it has no such limit."""
NONE = 99
FREE: Grid = (NONE, NONE)
_MOST_DIGITS = 5
_ASKED = 256
"""Rows that tell how a column is rounded."""
_NEAR = 0.01
_MOST_WINDOWS = 12
_MOST_LEFT_OUT = 3
_MOST_COMBINATIONS = 60


def grids(numbers: Numbers) -> list[Grid]:
    """How each column is rounded."""
    rows, columns = numbers.shape
    step = max(1, rows // _ASKED)
    asked = np.abs(numbers[::step])
    used = np.isfinite(asked) & (asked > 0)
    asked = np.where(used, asked, 1.0)
    power = np.floor(np.log10(asked))
    decimals = np.full(columns, NONE)
    digits = np.full(columns, NONE)
    for count in range(_MOST_DIGITS, -1, -1):
        decimals[_whole(asked * 10.0**count, used)] = count
    for count in range(_MOST_DIGITS, 0, -1):
        digits[_whole(asked * 10.0 ** (count - 1 - power), used)] = count
    return list(zip(decimals.tolist(), digits.tolist(), strict=True))


def _whole(scaled: Numbers, used: NDArray[np.bool_]) -> NDArray[np.bool_]:
    close = (np.abs(scaled - np.rint(scaled)) <= _NEAR) | ~used
    return np.asarray(close.all(0))


def widest(parts: Sequence[Grid]) -> Grid:
    return max(part[0] for part in parts), max(part[1] for part in parts)


def codes(numbers: Numbers, parts: Sequence[Grid]) -> Keys:
    """A code for each number, its sign left out, rounded as `parts` say for each column."""
    values = np.abs(numbers)
    if any(part != FREE for part in parts):
        decimals = np.array([part[0] for part in parts], dtype=np.float64)
        digits = np.array([part[1] for part in parts], dtype=np.float64)
        power = np.floor(np.log10(np.where(values > 0, values, 1.0)))
        unit = np.maximum(
            np.where(decimals < NONE, 10.0**-decimals, 0.0),
            np.where(digits < NONE, 10.0 ** (power - digits + 1), 0.0),
        )
        rounded = np.rint(values / np.where(unit > 0, unit, 1.0)) * unit
        values = np.where(unit > 0, rounded, values)
    with np.errstate(over="ignore"):
        return values.astype(np.float32).view(np.uint32).astype(np.uint64)


def mixed(values: Keys, salt: int = 0) -> Keys:
    """SplitMix64, so that sums of codes tell sets of codes apart."""
    start = (0x9E3779B97F4A7C15 * (salt + 1)) & 0xFFFFFFFFFFFFFFFF
    one = values + np.uint64(start)
    one = (one ^ (one >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    one = (one ^ (one >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return one ^ (one >> np.uint64(31))


def ordered(made: Keys) -> Keys:
    """One key a row of codes, which depends on the order of the columns."""
    total = np.zeros(len(made), dtype=np.uint64)
    for place in range(made.shape[1]):
        total += mixed(made[:, place], place + 1)
    return total


def unordered(made: Keys) -> Keys:
    total: Keys = mixed(made).sum(1, dtype=np.uint64)
    return total


Candidate = tuple[str, tuple[Grid, ...], Keys]
"""(form, how the columns are rounded, one key a row); the form is ORDERED or SHUFFLED."""
ORDERED, SHUFFLED = "columns in order", "columns in another order"


def candidates(
    numbers: Numbers, width: int, names: Sequence[str], wanted: Sequence[str]
) -> Iterator[Candidate]:
    """Keys for each choice of `width` of the columns that a table with columns more may mean: those
    with the `wanted` names, neighbours, and all but a few."""
    columns = numbers.shape[1]
    if columns < width:
        return
    parts = grids(numbers)
    made = codes(numbers, parts)
    chosen = _named(names, wanted)
    if len(chosen) == width and chosen != list(range(chosen[0], chosen[0] + width)):
        yield ORDERED, tuple(parts[place] for place in chosen), ordered(made[:, chosen])
    for start in _starts(columns - width):
        window = slice(start, start + width)
        yield ORDERED, tuple(parts[window]), ordered(made[:, window])
    bags = mixed(made)
    whole = bags.sum(1, dtype=np.uint64)
    for left in _left_out(columns, width):
        kept = [place for place in range(columns) if place not in left]
        grid = widest([parts[place] for place in kept])
        yield SHUFFLED, (grid,) * width, whole - bags[:, left].sum(1, dtype=np.uint64)


def _named(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    lower = [name.strip().lower() for name in names]
    return [
        place for one in wanted for place, name in enumerate(lower) if name == one.strip().lower()
    ]


def _starts(most: int) -> list[int]:
    if most < _MOST_WINDOWS:
        return list(range(most + 1))
    half = _MOST_WINDOWS // 2
    return [*range(half), *range(most - half + 1, most + 1)]


def _left_out(columns: int, width: int) -> list[list[int]]:
    extra = columns - width
    windows = [[*range(start), *range(start + width, columns)] for start in _starts(extra)]
    some: list[list[int]] = []
    if 0 < extra <= _MOST_LEFT_OUT:
        for count, chosen in enumerate(combinations(range(columns), extra)):
            if count == _MOST_COMBINATIONS:
                break
            some.append(list(chosen))
    return [*windows, *(one for one in some if one not in windows)]
