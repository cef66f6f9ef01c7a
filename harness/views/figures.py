"""The figures of a report, as drawings: scores with their intervals, what was tried as a tree,
curves with a line for each seed, budget over time."""

import math
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from harness.domain.plain_text import one_line
from harness.domain.statuses import ExperimentStatus
from harness.views.drawing import (
    BAD,
    GOOD,
    HUES,
    INK,
    OPEN,
    PALE,
    Dot,
    Drawing,
    Point,
    Shape,
    Stroke,
    Words,
)
from harness.views.tables import figure

WIDTH = 640.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 20.0, 16.0, 28.0
_ROW = 26.0
_TICKS = 5
_WORDS = 60
_APART = 42.0
_MOST = 30
"""Experiments in one drawing: a page has room for them."""
_STEP, _DEEPEST = 22.0, 300.0
"""How far a child stands from its parent, and the deepest one from the left."""
_BROAD = "MWmw@%—…"
_HOURS = 2.0
"""A shorter time is told in minutes."""
_SPLITS = (("validation", HUES[0]), ("held_out", HUES[1]))

Rows = Sequence[Mapping[str, Any]]
RowT = TypeVar("RowT")


class Frame:
    """Two axes: from values to places on the drawing. A range without width gets some, and the
    one tick that its value is."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        height: float,
        left: float = _LEFT,
    ) -> None:
        self._x, self._y = _wide(x), _wide(y)
        self._across, self._up = _marks(x), _marks(y)
        self.left, self.right = left, WIDTH - _RIGHT
        self.top, self.bottom = _TOP, height - _BOTTOM

    def x(self, value: float) -> float:
        low, high = self._x
        share = (value - low) / (high - low)
        return self.left + share * (self.right - self.left)

    def y(self, value: float) -> float:
        low, high = self._y
        share = (value - low) / (high - low)
        return self.bottom - share * (self.bottom - self.top)

    def at(self, x: float, y: float) -> Point:
        return self.x(x), self.y(y)

    def below(self, words: str) -> Iterator[Shape]:
        """The axis below, with its ticks."""
        line = ((self.left, self.bottom), (self.right, self.bottom))
        yield Stroke(points=line, colour=PALE)
        for value in self._across:
            place = (self.x(value), self.bottom + 12)
            yield Words(at=place, text=f"{value:g}", size=8, anchor="middle")
        middle = ((self.left + self.right) / 2, self.bottom + 24)
        yield Words(at=middle, text=words, size=8, anchor="middle")

    def beside(self) -> Iterator[Shape]:
        """The axis on the left: a pale line for each tick."""
        for value in self._up:
            y = self.y(value)
            yield Stroke(points=((self.left, y), (self.right, y)), colour="#e6eaee", width=0.7)
            yield Words(at=(self.left - 6, y + 3), text=f"{value:g}", size=8, anchor="end")


def ticks(low: float, high: float) -> list[float]:
    """About five round values within the range."""
    raw = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * one for one in (1, 2, 5, 10) if power * one >= raw)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round(number * step, digits) for number in range(first, last + 1)]


def _marks(range_: tuple[float, float]) -> list[float]:
    """Its ticks; of a range without width only the value, since nothing was logged beside it."""
    low, high = range_
    return ticks(low, high) if high > low else [low]


def _wide(range_: tuple[float, float]) -> tuple[float, float]:
    low, high = range_
    if high > low:
        return low, high
    margin = abs(low) * 0.05 or 1.0
    return low - margin, high + margin


def scores(plan: Mapping[str, Any], rows: Rows) -> list[Drawing]:
    """Each experiment's score with its 95% interval, by split; the tiers as dashed lines. As many
    drawings, over one range, as a page each has room for."""
    shown = [row for row in rows if any(row[split]["score"] is not None for split, _ in _SPLITS)]
    values = [value for row in shown for split, _ in _SPLITS for value in _reach(row[split])]
    if not values:
        return []
    tiers = {name: one for name, one in plan["tiers"].items() if one is not None}
    low, high = min([*values, *tiers.values()]), max([*values, *tiers.values()])
    margin = (high - low) * 0.05 or 0.01
    across = (low - margin, high + margin)
    return [_scores(plan, part, across, tiers) for part in _pages(shown)]


def _scores(
    plan: Mapping[str, Any],
    shown: Rows,
    across: tuple[float, float],
    tiers: Mapping[str, float],
) -> Drawing:
    height = _TOP + _ROW * len(shown) + _BOTTOM + 16
    frame = Frame(across, (0, 1), height, left=90)
    shapes: list[Shape] = [*frame.below(one_line(plan["metric"], _WORDS))]
    for name, least in tiers.items():
        x = frame.x(least)
        ends = ((x, frame.top), (x, frame.bottom))
        shapes += [
            Stroke(points=ends, colour=PALE, dashed=True),
            Words(at=(x, frame.top - 4), text=str(name), size=8, anchor="middle"),
        ]
    for place, row in enumerate(shown):
        y = frame.top + 12 + _ROW * place
        shapes.append(Words(at=(6, y + 6), text=row["experiment"], colour=_colour(row)))
        for split, hue in _SPLITS:
            shapes += _whisker(frame, row[split], y, hue)
            y += 8
    shapes += _legend(frame, height)
    return Drawing(width=WIDTH, height=height, shapes=shapes, title="Scores with their intervals")


def _pages(rows: Sequence[RowT]) -> Iterator[Sequence[RowT]]:
    for begin in range(0, len(rows), _MOST):
        yield rows[begin : begin + _MOST]


def _reach(total: Mapping[str, Any]) -> list[float]:
    if total["score"] is None:
        return []
    return [total["score"], *(total["interval"] or ())]


def _whisker(frame: Frame, total: Mapping[str, Any], y: float, hue: str) -> Iterator[Shape]:
    if total["score"] is None:
        return
    if total["interval"]:
        low, high = (frame.x(one) for one in total["interval"])
        yield Stroke(points=((low, y), (high, y)), colour=hue, width=1.6)
        for end in (low, high):
            yield Stroke(points=((end, y - 3), (end, y + 3)), colour=hue)
    yield Dot(at=(frame.x(total["score"]), y), colour=hue, hollow=total["interval"] is None)


def _legend(frame: Frame, height: float) -> Iterator[Shape]:
    for place, (split, hue) in enumerate(_SPLITS):
        x = frame.left + 90 * place
        yield Dot(at=(x, height - 5), colour=hue)
        name = split.replace("_", "-")
        yield Words(at=(x + 7, height - 2), text=name, size=8)


def tree(rows: Rows) -> list[Drawing]:
    """What was tried: each experiment below the one that it builds on. As many drawings as a page
    each has room for; one that builds on an experiment of an earlier drawing has no line to it."""
    ordered = list(lineage(rows))
    step = min(_STEP, _DEEPEST / max([1, *(depth for depth, _ in ordered)]))
    return [_tree(part, step) for part in _pages(ordered)]


def _tree(ordered: Sequence[tuple[int, Mapping[str, Any]]], step: float) -> Drawing:
    height = _ROW * len(ordered) + 12
    shapes: list[Shape] = []
    places: dict[str, Point] = {}
    for number, (depth, row) in enumerate(ordered):
        here = (14 + step * depth, 18 + _ROW * number)
        places[row["experiment"]] = here
        above = places.get(row["parent"] or "")
        if above is not None:
            corner = (above[0], here[1])
            shapes.append(Stroke(points=(above, corner, here), colour=PALE, width=1.4))
    for _, row in ordered:
        x, y = places[row["experiment"]]
        kept = row["status"] == ExperimentStatus.KEPT
        shapes.append(Dot(at=(x, y), radius=5, colour=_colour(row), hollow=not kept))
        told = f"{row['experiment']} {row['status']} {figure(row['validation'])}"
        shapes.append(Words(at=(x + 11, y), text=told, colour=_colour(row)))
        words = _fitting(one_line(row["hypothesis"], 200), WIDTH - x - 11)
        shapes.append(Words(at=(x + 11, y + 10), text=words, size=8))
    return Drawing(width=WIDTH, height=height, shapes=shapes, title="What was tried, as a tree")


def _fitting(text: str, room: float) -> str:
    """As much of `text` as `room` points hold in letters of 8 points, most of them 5 wide."""
    used = 0.0
    for place, sign in enumerate(text):
        wide = sign in _BROAD or unicodedata.east_asian_width(sign) in "WF"
        used += 8.2 if wide else 5.2
        if used > room:
            return text[: max(0, place - 2)].rstrip() + "…"
    return text


def lineage(rows: Rows) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(depth, experiment) in the order of a tree, children below their parent, oldest first. One
    whose parent is not among `rows` stands at the left."""
    known = {row["experiment"] for row in rows}

    def below(parent: str | None, depth: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for row in rows:
            own = row["parent"] if row["parent"] in known else None
            if own == parent:
                yield depth, row
                yield from below(row["experiment"], depth + 1)

    yield from below(None, 0)


def _colour(row: Mapping[str, Any]) -> str:
    colours = {ExperimentStatus.KEPT: GOOD, ExperimentStatus.DISCARDED: BAD}
    return colours.get(row["status"], OPEN)


def curves(metric: str, axis: str, lines: Sequence[Mapping[str, Any]]) -> Drawing | None:
    """One metric over training; a line for each seed. `lines`: {seed, points}."""
    points = [point for line in lines for point in line["points"]]
    if not points:
        return None
    height = 190.0
    frame = Frame(_range(points, 0), _range(points, 1), height)
    shapes: list[Shape] = [*frame.beside(), *frame.below(axis)]
    for place, line in enumerate(lines):
        hue = HUES[place % len(HUES)]
        drawn = [frame.at(*point) for point in line["points"]]
        if len(drawn) > 1:
            shapes.append(Stroke(points=drawn, colour=hue, width=1.3))
        if drawn:
            shapes.append(Dot(at=drawn[-1], radius=2.2, colour=hue))
        seed = Words(at=(frame.left + 96 * place, 10), text=f"seed {line['seed']}", colour=hue)
        shapes.append(seed)
    return Drawing(width=WIDTH, height=height, shapes=shapes, title=f"{metric} by seed")


def budget(series: Mapping[str, Any]) -> Drawing | None:
    """Minutes of training over the time since the first experiment was opened, a dot for each
    experiment's end; the plan's limit as a dashed line."""
    points = series["minutes"]
    if not points:
        return None
    height = 170.0
    limit = series["limit"]
    highest = max(y for _, y in points)
    top = limit if limit <= 3 * highest else highest * 1.1
    longest = max(x for x, _ in points) or 1.0
    unit, per_hour = ("hours", 1) if longest > _HOURS else ("minutes", 60)
    axis = Frame((0, longest * per_hour), (0, top), height)
    frame = Frame((0, longest), (0, top), height)
    shapes: list[Shape] = [*axis.beside(), *axis.below(f"{unit} since the first experiment")]
    drawn = [frame.at(0, 0), *_steps(points, frame.at)]
    shapes.append(Stroke(points=drawn, colour=HUES[0], width=1.5))
    if limit <= top:
        y = frame.y(limit)
        shapes.append(Stroke(points=((frame.left, y), (frame.right, y)), colour=BAD, dashed=True))
    shapes += _decided(series, frame, longest)
    return Drawing(width=WIDTH, height=height, shapes=shapes, title="Training minutes over time")


def _decided(series: Mapping[str, Any], frame: Frame, longest: float) -> Iterator[Shape]:
    """A dot for each decision; names that would cover the last one are left out."""
    named_at = -math.inf
    for when, name in series["decided"]:
        spent = max((y for x, y in series["minutes"] if x <= when), default=0.0)
        x, y = frame.at(min(when, longest), spent)
        yield Dot(at=(x, y), radius=2.5, colour=INK)
        if x - named_at >= _APART:
            yield Words(at=(x, y - 6), text=name, size=7, anchor="middle")
            named_at = x


def _steps(points: Sequence[Point], at: Callable[[float, float], Point]) -> Iterator[Point]:
    before = 0.0
    for x, y in points:
        yield at(x, before)
        yield at(x, y)
        before = y


def _range(points: Sequence[Point], axis: int) -> tuple[float, float]:
    return min(point[axis] for point in points), max(point[axis] for point in points)
