"""When a checkpoint is due, and which value of a metric is better. Needs no torch."""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.domain import variables
from harness.domain.statuses import Direction
from harness.errors import UsageError

_SPLIT = re.compile(r"^(?:val|valid|validation|eval|dev|test)[_/]")


def should_checkpoint(
    epoch: int, total_epochs: int | None = None, every: int = 10, *, is_best: bool = False
) -> bool:
    """Whether a checkpoint is saved after `epoch`, counted from 0: after the best epoch so far,
    each `every`-th (9, 19, ... with 10), and the last. Without a total the last epoch is unknown:
    `Checkpointer.finish` saves it. Raises UsageError for an impossible count."""
    if epoch < 0 or every < 1 or (total_epochs is not None and total_epochs < 1):
        raise UsageError(
            f"should_checkpoint(epoch={epoch}, total_epochs={total_epochs}, every={every}):"
            " expected an epoch from 0, and counts of at least 1.",
            hint="Count epochs from 0; pass total_epochs=None when the total is unknown.",
        )
    return is_best or (epoch + 1) % every == 0 or epoch + 1 == total_epochs


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What "best" means: the plan's metric and its direction."""

    metric: str
    direction: Direction

    def better(self, value: float | None, than: float | None) -> bool:
        """Whether `value` beats `than`, the best so far (None without one).

        NaN and infinities beat nothing; an equal value does not replace the best.
        """
        if value is None or not math.isfinite(value):
            return False
        if than is None:
            return True
        return value > than if self.direction is Direction.MAXIMIZE else value < than


def goal_from_environment(environ: Mapping[str, str] | None = None) -> Goal:
    """The plan's goal, as the supervisor passes it on. Raises UsageError without it."""
    values = os.environ if environ is None else environ
    metric, direction = values.get(variables.METRIC), values.get(variables.DIRECTION)
    if not metric or direction not in tuple(Direction):
        raise UsageError(
            "The metric that decides about the best checkpoint, or its direction, is unknown:"
            f" {variables.METRIC} is {metric!r}, {variables.DIRECTION} is {direction!r}.",
            hint=(
                "Train with `harness train`, or pass goal=Goal(metric='accuracy',"
                " direction=Direction.MAXIMIZE)."
            ),
            code="direction_unknown",
        )
    return Goal(metric=metric, direction=Direction(direction))


def planned_direction(metric: str) -> Direction | None:
    """The plan's direction when `metric`, with or without a split's name, is its metric."""
    planned, direction = os.environ.get(variables.METRIC), os.environ.get(variables.DIRECTION)
    same = planned in (metric, _SPLIT.sub("", metric))
    return Direction(direction) if same and direction else None
