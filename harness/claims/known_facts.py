"""The facts that claims are compared with: scores, logged metrics, evidence files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ClaimKind(StrEnum):
    RECOMPUTED = "recomputed"
    """Agrees with what the harness computed from checkpoints or holds in its ledger."""
    LOGGED = "logged"
    """Agrees with run logger rows, or with an evidence file of a measuring program."""
    CONTRADICTED = "contradicted"
    UNSUPPORTED = "unsupported"


HOLDS = frozenset({ClaimKind.RECOMPUTED, ClaimKind.LOGGED})


@dataclass(frozen=True, kw_only=True)
class KnownScore:
    """The score of an experiment on one split, in the metric's own unit."""

    mean: float
    spread: float | None
    """Sample standard deviation over seeds."""
    values: tuple[float, ...]
    """One per seed."""
    rows: int
    interval: tuple[float, float] | None
    baseline: float | None
    """The trivial predictor's score on the same rows."""


@dataclass(frozen=True, kw_only=True)
class KnownExperiment:
    id: str
    parent: str | None
    metric: str
    maximize: bool
    tiers: tuple[float, ...]
    scores: Mapping[str, KnownScore]
    """By split: "validation", "held_out"."""
    launches: int
    """Number of registered runs, however they ended."""
    seconds: float | None = None
    """Mean wall time of the completed runs."""
    logged: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Metric as training logged it -> every value of every counted run."""


@dataclass(frozen=True, kw_only=True)
class KnownFacts:
    experiments: Mapping[str, KnownExperiment] = field(default_factory=dict)
    evidence: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """File of evidence, e.g. "docs/evidence/bench.json" -> its figures."""
    programs: frozenset[str] = frozenset()
    """Programs that measure, e.g. "bench/status.py"."""

    @property
    def metrics(self) -> frozenset[str]:
        """Names of the plans' metrics and of all logged metrics."""
        experiments = self.experiments.values()
        return frozenset(
            {one.metric for one in experiments}
            | {name for one in experiments for name in one.logged}
        )
