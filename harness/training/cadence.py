"""When a checkpoint is due, and which value of a metric is better. No torch is needed for
either."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from harness.domain import variables
from harness.domain.statuses import Direction
from harness.errors import UsageError


def should_checkpoint(
    epoch: int, total_epochs: int | None = None, every: int = 10, *, is_best: bool = False
) -> bool:
    """Whether a checkpoint is saved after `epoch`, counted from 0: the best one so far, each
    `every`-th, the last one.

    With every=10 those are epochs 9, 19, ...; a run of 5 epochs saves epoch 4. Where the total is
    not known (None) the last one cannot be told: `Checkpointer.finish` saves it. Raises UsageError
    for a count that cannot be.
    """
    if epoch < 0 or every < 1 or (total_epochs is not None and total_epochs < 1):
        raise UsageError(
            f"should_checkpoint(epoch={epoch}, total_epochs={total_epochs}, every={every}):"
            " expected an epoch from 0, and counts of at least 1.",
            hint="Count epochs from 0; pass total_epochs=None when the end is not known.",
        )
    return is_best or (epoch + 1) % every == 0 or epoch + 1 == total_epochs


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What "best" means: the plan's metric and its direction."""

    metric: str
    direction: Direction

    def better(self, value: float | None, than: float | None) -> bool:
        """Whether `value` beats `than`, the best so far; None where there is none yet. NaN and
        infinities beat nothing, and what equals the best does not replace it."""
        if value is None or not math.isfinite(value):
            return False
        if than is None:
            return True
        return value > than if self.direction is Direction.MAXIMIZE else value < than


def goal_from_environment(environ: Mapping[str, str] | None = None) -> Goal:
    """The plan's, as the supervisor gives it. Raises UsageError when it is not there: a direction
    is never guessed."""
    values = os.environ if environ is None else environ
    metric, direction = values.get(variables.METRIC), values.get(variables.DIRECTION)
    if not metric or direction not in tuple(Direction):
        raise UsageError(
            "Which metric decides about the best checkpoint, and in which direction, is not known:"
            f" {variables.METRIC} is {metric!r}, {variables.DIRECTION} is {direction!r}.",
            hint=(
                "Train with `harness train`, or pass goal=Goal(metric='accuracy',"
                " direction=Direction.MAXIMIZE)."
            ),
            code="direction_unknown",
        )
    return Goal(metric=metric, direction=Direction(direction))
