"""What a watch is told about the run: directions, cadence, what is off, other thresholds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from harness.detectors.kinds import KINDS, known_thresholds
from harness.domain.statuses import Direction
from harness.errors import UsageError

STOP_ON = ("non_finite", "divergence")
"""Fatal alarms that end a run when the plan says nothing."""


@dataclass(frozen=True, kw_only=True)
class WatchSettings:
    """Raises UsageError for a code or a threshold that the table of kinds does not have."""

    directions: Mapping[str, Direction] = field(default_factory=dict)
    """Metric -> direction, where the plan says it; names alone decide about the others."""
    checkpoint_every: int | None = None
    """Epochs; None asks for no checkpoints."""
    off: frozenset[str] = frozenset()
    stop_on: frozenset[str] = frozenset(STOP_ON)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """"code.name" -> another value."""

    def __post_init__(self) -> None:
        for code in sorted({*self.off, *self.stop_on}):
            if code not in KINDS:
                raise UsageError(
                    f"There is no alarm {code!r}.", hint=f"Use one of {', '.join(KINDS)}."
                )
        for name in sorted(self.thresholds):
            if name not in known_thresholds():
                raise UsageError(
                    f"There is no threshold {name!r}.",
                    hint=f"Use one of {', '.join(known_thresholds())}.",
                )

    @cached_property
    def limits(self) -> dict[str, float]:
        return {**known_thresholds(), **self.thresholds}
