"""What the loop knows when it chooses its next step: plain frozen data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.artifacts.next_ideas import Idea
from harness.domain.findings import Finding
from harness.domain.statuses import (
    CLOSED_EXPERIMENTS,
    FINAL_RUNS,
    DecisionKind,
    ExperimentStatus,
    GateMode,
    GateName,
    RunStatus,
    Tier,
    Verdict,
)


@dataclass(frozen=True, kw_only=True)
class RunState:
    """One of the runs that count (one a seed, of the newest code)."""

    id: str
    seed: int
    status: RunStatus
    supervised: bool = False
    """Whether the process that watches an open run lives."""
    final_checkpoint: bool = False
    bypassed: bool = False
    reason: str = ""
    stopped_by: str = ""
    """The code of the alarm that ended it."""

    @property
    def open(self) -> bool:
        return self.status not in FINAL_RUNS


@dataclass(frozen=True, kw_only=True)
class VerdictState:
    id: str
    verdict: Verdict
    current: bool
    """False when something that it read has changed since."""
    findings: tuple[Finding, ...] = ()
    tier: Tier | None = None
    better: bool | None = None
    """Than the parent, or the trivial predictor, beyond the noise floor; None when it cannot be
    said."""
    why: str = ""
    """The comparison in words."""
    recorded: int = 1
    """How many verdicts of this gate the experiment has."""


@dataclass(frozen=True, kw_only=True)
class SessionState:
    step: str
    """The key of the step that it served, e.g. "build-1-1"."""
    outcome: str | None
    """finished, refused, failed, cut; None when its end was never recorded: its driver died."""
    counted: bool = True
    """False for sessions before the newest LoopEnded: a person who continues gives a new chance."""


@dataclass(frozen=True, kw_only=True)
class ExperimentState:
    id: str
    status: ExperimentStatus
    runs: tuple[RunState, ...] = ()
    argv: tuple[str, ...] = ()
    """The command of the newest run; empty before the first."""
    lost: int = 0
    """Runs of the newest code that were lost with their supervisor."""
    awaiting: frozenset[str] = frozenset()
    """Scorable runs whose final checkpoint has no evaluation on validation yet."""
    awaiting_held_out: frozenset[str] = frozenset()
    result_written: bool = False
    hypothesis: str = ""
    model: str = "model"
    """What config.yaml calls it."""
    alarms: Mapping[str, str] = field(default_factory=dict)
    """Code -> severity of the open alarms of its runs."""
    undiagnosed: tuple[str, ...] = ()
    """Runs with an open alarm that no diagnosis explains."""
    methods_written: bool = False
    ideas: tuple[Idea, ...] = ()
    """What its next.md names, in its order; only of the newest experiment."""
    validation: VerdictState | None = None
    held_out: VerdictState | None = None
    decided: DecisionKind | None = None
    """The newest decision about it by whoever: KEEP, DISCARD, APPROVE, REJECT, ITERATE ..."""
    improved: bool = False
    """Whether it was better than all before it by more than the noise, in the plan's direction."""

    @property
    def closed(self) -> bool:
        return self.status in CLOSED_EXPERIMENTS

    def verdict(self, gate: GateName) -> VerdictState | None:
        return self.validation if gate is GateName.VALIDATION else self.held_out


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The plan's numbers that stop a loop."""

    seeds: int
    experiments: int
    total_minutes: float
    usd: float | None
    stop_tier: Tier
    patience: int
    mode: GateMode = GateMode.AUTO
    references: bool = False
    """Whether the plan names papers and baselines that a scout can read."""


@dataclass(frozen=True, kw_only=True)
class Spent:
    minutes: float = 0.0
    """Of training, by all runs under this plan."""
    usd: float = 0.0
    """By all sessions."""
    looks_left: int = 1
    """Held-out queries that the plan still allows."""


@dataclass(frozen=True, kw_only=True)
class LoopState:
    limits: Limits
    spent: Spent = field(default_factory=Spent)
    experiments: tuple[ExperimentState, ...] = ()
    """All under the plan, oldest first; the k-th has index k."""
    sessions: tuple[SessionState, ...] = ()
    """Oldest first."""
    unchanged: int = 0
    """How many steps in a row left this state as it was; the loop's runner counts them."""
