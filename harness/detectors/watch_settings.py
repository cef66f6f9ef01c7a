"""What a plan sets of the watch: codes that are off or stop a run, and other thresholds."""

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property

from harness.detectors.kinds import KINDS, STOP_ON
from harness.domain.late import Late, dataclass
from harness.domain.statuses import Direction
from harness.errors import UsageError


def known_thresholds() -> dict[str, float]:
    """Name, e.g. "stall.rows" -> value, for all kinds."""
    return {
        f"{code}.{name}": threshold.value
        for code, kind in KINDS.items()
        for name, threshold in kind.thresholds.items()
    }


@dataclass(frozen=True, kw_only=True)
class WatchSettings(Late):
    """A plan's settings of the watch.

    Raises UsageError for a code or a threshold that is not in the table of kinds.
    """

    directions: Mapping[str, Direction] = field(default_factory=dict)
    """Metric -> the plan's direction; for others the name decides."""
    checkpoint_every: int | None = None
    """Epochs; None when no checkpoints are expected."""
    off: frozenset[str] = frozenset()
    stop_on: frozenset[str] = frozenset(STOP_ON)
    parent: Mapping[str, Mapping[float, tuple[float, ...]]] = field(default_factory=dict)
    """Metric -> epoch or step -> the values of the parent's seeds there; empty: not compared."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """Name, e.g. "stall.rows" -> another value."""

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
