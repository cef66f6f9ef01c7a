"""What a model must reach; named, in one place."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    delta: float = 0.05
    """Least gain over the baseline; its 95% interval lies above 0, too."""
    rows: int = 20
    """Least rows that a verdict is given on."""
    quality: float = 0.65
    """Least score of the candidate itself."""
    arbiter_rejection: float = 0.20
    """Largest share of shadow answers that the arbiter rejected."""
    execution_rejection: float = 0.15
    """Largest share of shadow answers that timed out, failed or were invalid."""
    observations: int = 5
    shadow_seconds: float = 3600.0


THRESHOLDS = Thresholds()


@dataclass(frozen=True, kw_only=True)
class Check:
    """One threshold asked: what was found, what is wanted."""

    constraint: str
    actual: Any
    threshold: Any
    passed: bool
