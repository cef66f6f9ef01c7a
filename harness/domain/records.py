"""What the ledger answers: the state that its facts add up to. Frozen; one record a thing."""

from dataclasses import dataclass, field
from typing import Any

from harness.domain.statuses import (
    DecisionKind,
    Direction,
    ExperimentStatus,
    RunStatus,
    Split,
    Tier,
    Verdict,
)

LEAST_SEEDS = 3
"""With fewer, nobody knows how much of a difference between two experiments is noise."""


@dataclass(frozen=True, kw_only=True)
class ApprovedPlan:
    name: str
    version: int
    path: str
    sha256: str
    content: dict[str, Any]
    splits: dict[str, Any]
    scorer: dict[str, Any]
    by: str
    at: str


@dataclass(frozen=True, kw_only=True)
class Experiment:
    id: str
    number: int
    status: ExperimentStatus
    hypothesis: str
    parent: str | None
    plan: str
    plan_version: int
    by: str
    session: str | None
    opened_at: str


@dataclass(frozen=True, kw_only=True)
class Run:
    id: str
    experiment: str
    seed: int
    attempt: int
    status: RunStatus
    argv: tuple[str, ...]
    code: str
    data: dict[str, str]
    environment: dict[str, Any]
    sandbox: str
    token: str
    session: str | None
    registered_at: str
    pid: int | None = None
    boot: str | None = None
    started: float | None = None
    supervisor: dict[str, Any] = field(default_factory=dict)
    started_at: str | None = None
    ended_at: str | None = None
    exit_code: int | None = None
    reason: str = ""
    seconds: float | None = None
    rows: int = 0
    files: dict[str, str] = field(default_factory=dict)
    findings: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class RaisedAlarm:
    experiment: str
    run: str
    alarm: dict[str, Any]  # as detectors.Alarm.plain gives it
    at: str


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    id: str  # content hash
    experiment: str
    run: str
    path: str
    bytes: int
    epoch: int | None
    final: bool
    at: str


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    experiment: str
    run: str
    seed: int
    split: Split
    metric: str
    value: float | None
    n: int
    interval: tuple[float, float] | None
    checkpoint: str
    code: str
    inputs: str
    labels: str
    scorer: str
    predictions: str | None
    query: int
    sandbox: str
    plan_version: int
    baseline: float | None
    findings: tuple[dict[str, Any], ...]
    at: str


@dataclass(frozen=True, kw_only=True)
class RecordedVerdict:
    id: str
    """Empty for what a gate says of a decided experiment: it is shown, and the ledger does not hold
    it."""
    experiment: str
    gate: str
    verdict: Verdict
    findings: tuple[dict[str, Any], ...]
    evidence: dict[str, str]
    score: dict[str, Any] | None
    tier: Tier | None
    comparison: dict[str, Any] | None
    at: str
    shortfall: str | None = None
    notes: tuple[str, ...] = ()
    next_planned: str | None = None


@dataclass(frozen=True, kw_only=True)
class Decision:
    id: str
    kind: DecisionKind
    experiment: str | None
    by: str
    context: str
    choice: str
    alternatives: str
    reason: str
    confidence: str
    verdict: str | None
    supersedes: str | None
    at: str


@dataclass(frozen=True, kw_only=True)
class Session:
    id: str
    role: str
    experiment: str | None
    step: str
    sandbox: str
    driver: dict[str, Any]
    started_at: str
    ended_at: str | None = None
    outcome: str | None = None
    detail: str = ""
    turns: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, kw_only=True)
class HandOff:
    by: str
    session: str | None
    text: str
    experiment: str | None
    at: str
    hash: str  # of the fact


@dataclass(frozen=True, kw_only=True)
class Prior:
    id: str
    lesson: str
    evidence: str
    rule: str
    check: tuple[str, ...] | None
    by: str
    supersedes: str | None
    at: str
    superseded_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What a score is judged by; taken from the approved plan, never guessed."""

    metric: str
    direction: Direction
    tiers: dict[Tier, float]
    seeds: int
    queries: int

    def reaches(self, score: float, threshold: float) -> bool:
        return score >= threshold if self.direction is Direction.MAXIMIZE else score <= threshold

    def gain(self, score: float, reference: float) -> float:
        """How much better `score` is than `reference`, in the metric's unit; positive is better."""
        return score - reference if self.direction is Direction.MAXIMIZE else reference - score

    def tier(self, score: float) -> Tier | None:
        """The most ambitious tier that `score` reaches, or None."""
        reached = [
            tier for tier in Tier if tier in self.tiers and self.reaches(score, self.tiers[tier])
        ]
        return reached[-1] if reached else None
