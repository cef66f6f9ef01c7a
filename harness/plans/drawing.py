"""Which rows of a table go to which part: at random, by class, in whole groups, or by time.

The draw follows from the table, the options and the seed alone: the same call draws the same rows.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import UsageError
from harness.plans.contamination import Columns, row_hashes

Rows = NDArray[np.int64]
Codes = NDArray[np.int64]
LEAST_PART = 10
"""Rows of each part: fewer say nothing about a score."""
LEAST_GROUPS = 2
"""Groups of each part: one group has no spread to be resampled."""
_MOST_CLASSES = 100
_DRAWS = 200
"""Draws of groups, of which the one that comes nearest to the wanted shares is taken."""
_DEALT = 20_000_000
"""Groups that all draws deal: of very many groups the first draws are near enough."""
_DISTINCT = 0.9
"""Share of rows that differ from which copies go where the first of them was drawn."""


@dataclass(frozen=True, kw_only=True)
class Draw:
    """What decides a draw."""

    shares: Mapping[str, float]
    """Part -> its share of the rows; the rest is train."""
    seed: int
    stratify: bool
    label: NDArray[Any]
    alike: Codes | None = None
    """A number for each row; rows with the same one have equal inputs, and stay together where
    neither `group` nor `time` says which rows do."""
    group: NDArray[Any] | None = None
    time: NDArray[Any] | None = None


def draw(wanted: Draw) -> dict[str, Rows]:
    """Part -> its rows, in the table's order: "train", and the parts of `shares`. Raises UsageError
    for too few rows or groups, a class that cannot be in every part, times without an order."""
    n, parts = len(wanted.label), len(wanted.shares) + 1
    least = min(min(wanted.shares.values()), 1 - sum(wanted.shares.values()))
    if least * n < LEAST_PART - 0.5:
        raise UsageError(
            f"The table has {n} rows: a share of {least:.3g} of them is less than {LEAST_PART}"
            " rows.",
            hint="Use a larger table, or larger shares.",
            code="too_few_rows",
        )
    if wanted.time is not None:
        of = _by_time(wanted, wanted.time)
    else:
        classes = _codes(wanted.label) if wanted.stratify else np.zeros(n, dtype=np.int64)
        _require_classes(wanted, classes, parts)
        generator = np.random.Generator(np.random.PCG64(wanted.seed))
        if wanted.group is not None:
            of = _by_group(wanted, classes, _codes(wanted.group), generator)
        elif wanted.alike is not None:
            of = _by_copies(wanted, classes, wanted.alike, generator)
            _require_in_parts(wanted, classes, of, parts)
        else:
            of = _by_class(wanted, classes, generator)
    names = ("train", *wanted.shares)
    return {name: np.flatnonzero(of == number) for number, name in enumerate(names)}


def _by_copies(
    wanted: Draw, classes: Codes, alike: Codes, generator: np.random.Generator
) -> Codes:
    if len(np.unique(alike)) < _DISTINCT * len(alike):
        with contextlib.suppress(UsageError):  # a class of few different rows: said in its words
            return _by_group(wanted, classes, _codes(alike), generator)
    return with_copies(_by_class(wanted, classes, generator), alike)


def with_copies(of: Codes, alike: Codes) -> Codes:
    """The part of each row, where copies go with the first row that they are a copy of."""
    first, inverse = np.unique(alike, return_index=True, return_inverse=True)[1:]
    parts: Codes = of[first[inverse.reshape(-1)]]
    return parts


def codes_alike(columns: Columns, inputs: Sequence[str]) -> Codes | None:
    """A number for each row, the same for rows with equal inputs; None where all differ."""
    codes: dict[bytes, int] = {}
    alike = [codes.setdefault(key, len(codes)) for key in row_hashes(columns, inputs)]
    return None if len(codes) == len(alike) else np.array(alike, dtype=np.int64)


def enough(alike: Codes, share: float) -> bool:
    """Whether the rows differ often enough that a part of this share can have whole sets of
    copies."""
    return len(np.unique(alike)) * share >= LEAST_PART - 0.5


def joined(groups: NDArray[Any], alike: Codes) -> Codes:
    """Groups that have equal rows are one."""
    names = _codes(groups)
    above = list(range(int(names.max()) + 1))

    def top(name: int) -> int:
        while above[name] != name:
            above[name] = above[above[name]]
            name = above[name]
        return name

    first: dict[int, int] = {}
    for name, copies in zip(names.tolist(), alike.tolist(), strict=True):
        one, other = top(name), top(first.setdefault(copies, name))
        above[max(one, other)] = min(one, other)
    return _codes(np.array([top(name) for name in names.tolist()]))


def are_classes(label: NDArray[Any]) -> bool:
    """Whether the values are few enough to be classes: text, truth values or whole numbers."""
    return label.ndim == 1 and (
        label.dtype.kind in "SUbiu"
        and len(np.unique(label)) <= max(2, min(_MOST_CLASSES, len(label) // 10))
    )


def _codes(column: NDArray[Any]) -> Codes:
    codes: Codes = np.unique(column, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return codes


def _require_classes(wanted: Draw, classes: Codes, parts: int) -> None:
    """Every class has a row, and where rows are grouped a group, for each part."""
    for number, name in enumerate(np.unique(wanted.label) if wanted.stratify else ()):
        mine = classes == number
        units = int(mine.sum())
        if units < parts:
            raise UsageError(
                f"The class {name!s} has {units} rows; each of the {parts} parts needs one.",
                hint="Merge or remove the class, or pass --no-stratify.",
                code="class_too_small",
            )
        if wanted.group is not None and (units := len(np.unique(wanted.group[mine]))) < parts:
            raise UsageError(
                f"The class {name!s} stands in {units} groups; each of the {parts} parts needs"
                " one.",
                hint="Merge or remove the class, or pass --no-stratify.",
                code="class_too_small",
            )


def _require_in_parts(wanted: Draw, classes: Codes, of: Codes, parts: int) -> None:
    """Copies went where the first of them is: a class of few rows may have lost a part by it."""
    for number, name in enumerate(np.unique(wanted.label) if wanted.stratify else ()):
        held = len(np.unique(of[classes == number]))
        if held < parts:
            raise UsageError(
                f"The class {name!s} came into {held} of the {parts} parts: its rows are copies,"
                " which stay together.",
                hint="Draw with another --seed; or take the copies out, merge or remove the class,"
                " or pass --no-stratify.",
                code="class_too_small",
            )


def _by_class(wanted: Draw, classes: Codes, generator: np.random.Generator) -> Codes:
    of = np.zeros(len(classes), dtype=np.int64)
    for rows in _members(classes):
        order, start = generator.permutation(rows), 0
        for number, share in enumerate(wanted.shares.values(), start=1):
            # One row is left for each later part, and one for training.
            left = len(rows) - start - (len(wanted.shares) - number) - 1
            count = max(1, min(round(share * len(rows)), left))
            of[order[start : start + count]] = number
            start += count
    return of


def _by_group(
    wanted: Draw, classes: Codes, groups: Codes, generator: np.random.Generator
) -> Codes:
    """Groups in a random order until a part is full; of many orders, the one whose parts come
    nearest to their shares of each class."""
    shares = [1 - sum(wanted.shares.values()), *wanted.shares.values()]
    # One row a group: how many of its rows are of each class.
    counts = np.zeros((groups.max() + 1, classes.max() + 1))
    np.add.at(counts, (groups, classes), 1)
    if len(counts) < len(shares) * LEAST_GROUPS:
        raise UsageError(
            f"The rows are of {len(counts)} groups; each of the {len(shares)} parts needs"
            f" {LEAST_GROUPS}.",
            hint="Use a finer column, more data, or no --group.",
            code="too_few_groups",
        )
    target = np.outer(shares, counts.sum(axis=0))
    best, least = None, np.inf
    for _ in range(max(1, min(_DRAWS, _DEALT // len(counts)))):
        parts = _deal(generator.permutation(len(counts)), counts.sum(axis=1), shares)
        held = np.stack([counts[parts == number].sum(axis=0) for number in range(len(shares))])
        few = min((parts == number).sum() for number in range(len(shares))) < LEAST_GROUPS
        missing = wanted.stratify and bool((held == 0).any())
        off = float(np.abs(held - target).sum()) + (few or missing) * 2.0 * len(groups)
        if off < least:
            best, least = parts, off
    if best is None or least >= 2.0 * len(groups):
        raise UsageError(
            f"No draw of whole groups gives each part {LEAST_GROUPS} groups"
            f"{' and every class' if wanted.stratify else ''}.",
            hint="Use larger shares, a finer column, or pass --no-stratify.",
            code="too_few_groups",
        )
    return best[groups]


def _deal(order: Rows, sizes: NDArray[np.float64], shares: Sequence[float]) -> Codes:
    """The part of each group, when they are dealt in this order: each part ends where it comes
    nearest to its share."""
    parts = np.zeros(len(order), dtype=np.int64)
    rows, begin, before = np.cumsum(sizes[order]), 0, 0.0
    for number, share in list(enumerate(shares))[1:]:
        nearest = int(np.abs(rows[begin:] - before - share * rows[-1]).argmin()) + 1
        end = min(begin + max(LEAST_GROUPS, nearest), len(order))
        parts[order[begin:end]] = number
        begin, before = end, float(rows[end - 1])
        if begin == len(order):
            break
    return parts


def _by_time(wanted: Draw, time: NDArray[Any]) -> Codes:
    """The newest rows are held out, those before them validate; rows of one moment stay
    together."""
    moments = _moments(time)
    n, ordered = len(moments), np.sort(moments)
    of, end = np.zeros(n, dtype=np.int64), n
    # The first named part, held-out, is the newest.
    for number, share in enumerate(wanted.shares.values(), start=1):
        # Rows of the moment at the cut go to the later part.
        begin = int(np.searchsorted(ordered, ordered[max(0, end - max(1, round(share * n)))]))
        if begin == 0 or begin == end:
            raise UsageError(
                "Too many rows are of one moment: no cut by time gives each part its share.",
                hint="Use a finer column of time, or smaller shares.",
                code="too_few_moments",
            )
        late = end == n
        inside = (moments >= ordered[begin]) & (late | (moments < ordered[min(end, n - 1)]))
        of[inside] = number
        end = begin
    return of


def _moments(time: NDArray[Any]) -> NDArray[Any]:
    numbers = time.ndim == 1 and time.dtype.kind in "iuf"
    if numbers and np.isfinite(time).all():
        return time
    try:
        if time.ndim != 1 or time.dtype.kind not in "US":
            raise ValueError
        moments = np.array([_iso(str(cell)) for cell in time], dtype="datetime64[us]")
        if np.isnat(moments).any():
            raise ValueError
    except ValueError as error:
        raise UsageError(
            "The column of time holds other values than finite numbers or ISO dates such as"
            " 2024-05-01 or 2024-05-01T12:30:00.",
            hint="Write times so that they have one order.",
            code="time_unordered",
        ) from error
    return moments.astype(np.int64)


def _iso(cell: str) -> str:
    text = cell.strip().removesuffix("Z").removesuffix("+00:00").replace(" ", "T", 1)
    if not text[:4].isdigit() or text[4:5] not in ("", "-"):
        raise ValueError
    return text


def _members(codes: Codes) -> Iterator[Rows]:
    for number in range(int(codes.max()) + 1):
        yield np.flatnonzero(codes == number)
