"""A figure as lines, dots and words on a plane, in points from its upper left corner; as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]

INK, PALE = "#1f2933", "#c3ccd5"
GOOD, BAD, OPEN = "#1b7f4b", "#b3261e", "#8a6d00"
HUES = (
    "#1f5fa8",
    "#b5540a",
    "#1b7f4b",
    "#7a3fa0",
    "#a01f4f",
    "#3f6f7a",
)
"""Dark enough for a line on white paper."""


@dataclass(frozen=True, kw_only=True)
class Stroke:
    """A line through at least two points."""

    points: Sequence[Point]
    colour: str = INK
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True, kw_only=True)
class Dot:
    at: Point
    radius: float = 3.0
    colour: str = INK
    hollow: bool = False


@dataclass(frozen=True, kw_only=True)
class Words:
    at: Point
    """Where the base line begins, has its middle or ends."""
    text: str
    size: float = 9.0
    anchor: Anchor = "start"
    colour: str = INK


Shape = Stroke | Dot | Words


@dataclass(frozen=True, kw_only=True)
class Drawing:
    width: float
    height: float
    shapes: Sequence[Shape]
    title: str
    """What it shows, for those who do not see it."""


def svg(drawing: Drawing) -> str:
    """A `<svg>` element that needs nothing from elsewhere."""
    size = f"0 0 {drawing.width:g} {drawing.height:g}"
    body = "".join(map(_element, drawing.shapes))
    label = escape(drawing.title, quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img"'
        f' aria-label="{label}">{body}</svg>'
    )


def _element(shape: Shape) -> str:
    if isinstance(shape, Stroke):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
        dash = ' stroke-dasharray="4 3"' if shape.dashed else ""
        return (
            f'<polyline points="{points}" fill="none" stroke="{shape.colour}"'
            f' stroke-width="{shape.width:g}"{dash}/>'
        )
    x, y = shape.at
    if isinstance(shape, Dot):
        fill = "#ffffff" if shape.hollow else shape.colour
        return (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{shape.radius:g}" fill="{fill}"'
            f' stroke="{shape.colour}"/>'
        )
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{shape.size:g}" fill="{shape.colour}"'
        f' text-anchor="{shape.anchor}">{escape(shape.text)}</text>'
    )
