"""A trained model's way to be served, and what the ledger answers about it."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from harness.errors import TransitionError

BASE = "base"
"""What an evaluation is against when its baseline is the base model."""


class ModelState(StrEnum):
    REGISTERED = "registered"  # a validated result brought it
    CANDIDATE = "candidate"  # an evaluation speaks for it
    SHADOW = "shadow"  # it runs beside the deployed one, and its answers are not used
    PROMOTABLE = "promotable"  # its shadow time was good
    DEPLOYED = "deployed"  # served
    RETIRED = "retired"  # was deployed, and may be again
    REVOKED = (  # a later evaluation failed; a later one that passes makes it a candidate again
        "revoked"
    )
    REJECTED = "rejected"  # a person said so; final


_REVOKED = frozenset({ModelState.REVOKED, ModelState.REJECTED})

MODEL_TRANSITIONS: dict[ModelState, frozenset[ModelState]] = {
    ModelState.REGISTERED: _REVOKED | {ModelState.CANDIDATE},
    ModelState.CANDIDATE: _REVOKED | {ModelState.SHADOW},
    ModelState.SHADOW: _REVOKED | {ModelState.PROMOTABLE},
    ModelState.PROMOTABLE: _REVOKED | {ModelState.DEPLOYED},
    ModelState.DEPLOYED: _REVOKED | {ModelState.RETIRED},
    ModelState.RETIRED: _REVOKED | {ModelState.DEPLOYED},
    ModelState.REVOKED: frozenset({ModelState.CANDIDATE, ModelState.REJECTED}),
    ModelState.REJECTED: frozenset(),
}


def require_model_transition(model: str, before: ModelState, after: ModelState) -> None:
    """Raises TransitionError naming the model and both states when `after` may not follow
    `before`."""
    if after not in MODEL_TRANSITIONS[before]:
        following = ", ".join(sorted(MODEL_TRANSITIONS[before])) or "nothing: it is final"
        raise TransitionError(
            f"Model {model[:12]} is {before}; it cannot become {after} (what may follow {before}:"
            f" {following}).",
            hint="`harness posttrain status` lists the models.",
        )


@dataclass(frozen=True, kw_only=True)
class Program:
    """A training program's specification, as it was recorded."""

    experiment: str
    spec: dict[str, Any]
    sha256: str
    by: str
    warnings: tuple[dict[str, Any], ...]
    at: str


@dataclass(frozen=True, kw_only=True)
class Judgement:
    experiment: str
    run: str
    accepted: bool
    source: str
    problems: tuple[dict[str, Any], ...]
    result: dict[str, Any] | None
    artifact: str | None
    at: str


@dataclass(frozen=True, kw_only=True)
class Model:
    id: str
    experiment: str
    run: str
    profile: str
    path: str
    format: str
    base: dict[str, Any]
    state: ModelState
    since: str
    """When it came into its state."""
    at: str


@dataclass(frozen=True, kw_only=True)
class ModelEvaluation:
    id: str
    model: str
    against: str
    benchmark: dict[str, Any]
    mode: str
    verdict: str
    reason: str
    baseline: float | None
    candidate: float | None
    delta: float | None
    interval: tuple[float, float] | None
    margin: float | None
    n: int
    seed: int
    evidence: dict[str, str]
    problems: tuple[dict[str, Any], ...]
    at: str
    hash: str
    """Of the fact."""
    sandbox: str | None = None
    """That the evaluator ran in; None for evaluations from before it was recorded."""

    @property
    def subject(self) -> tuple[str, str, str]:
        """What two evaluations share when the later one replaces the earlier: benchmark, mode and
        baseline. A win over a poor model undoes no failure against the base."""
        return str(self.benchmark["sha256"]), self.mode, self.against


@dataclass(frozen=True, kw_only=True)
class ShadowObservation:
    model: str
    outcome: str
    by: str
    note: str
    at: str
    hash: str


@dataclass(frozen=True, kw_only=True)
class ModelMove:
    model: str
    before: ModelState
    after: ModelState
    why: str
    by: str
    checks: tuple[dict[str, Any], ...]
    evidence: dict[str, str]
    decision: str | None
    at: str


@dataclass(frozen=True, kw_only=True)
class Serving:
    profile: str
    model: str | None
    before: str | None
    how: str
    why: str
    by: str
    decision: str | None
    at: str


@dataclass(frozen=True, kw_only=True)
class ModelHistory:
    """All that was recorded about one model, oldest first."""

    evaluations: tuple[ModelEvaluation, ...] = ()
    observations: tuple[ShadowObservation, ...] = ()
    moves: tuple[ModelMove, ...] = field(default=())
