"""The built-in scorers by name: what each needs from a prediction, and the direction it is usually
read in."""

from dataclasses import dataclass
from enum import StrEnum

from harness.domain.statuses import Direction


class Needs(StrEnum):
    """The form of a prediction."""

    CLASS = "class"
    """`prediction` is a class name."""
    NUMBER = "number"
    """`prediction` is a finite number."""
    PROBABILITIES = "probabilities"
    """`p_<class>` for each class, in [0, 1], summing to 1."""
    ANY = "any"
    """A frozen script's: `prediction` or `p_<class>` columns; numbers where the labels are
    numbers."""


@dataclass(frozen=True, kw_only=True)
class Scorer:
    name: str
    needs: Needs
    hint: Direction
    """For messages when a plan states the other direction; the plan's direction always decides."""
    has_rows: bool
    """Whether the value is the mean of one contribution a row."""


BUILT_IN: dict[str, Scorer] = {
    scorer.name: scorer
    for scorer in (
        Scorer(name="accuracy", needs=Needs.CLASS, hint=Direction.MAXIMIZE, has_rows=True),
        Scorer(name="macro_f1", needs=Needs.CLASS, hint=Direction.MAXIMIZE, has_rows=False),
        Scorer(name="mse", needs=Needs.NUMBER, hint=Direction.MINIMIZE, has_rows=True),
        Scorer(name="mae", needs=Needs.NUMBER, hint=Direction.MINIMIZE, has_rows=True),
        Scorer(name="log_loss", needs=Needs.PROBABILITIES, hint=Direction.MINIMIZE, has_rows=True),
    )
}


def needs_of(name: str, entry: str | None) -> Needs:
    """What the scorer reads from a prediction; `entry` is a frozen script's path, or None for a
    built-in.

    Raises KeyError for a name that is not built in, when there is no script.
    """
    return Needs.ANY if entry is not None else BUILT_IN[name].needs
