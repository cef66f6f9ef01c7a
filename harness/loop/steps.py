"""What the loop can do next: one record for each kind of step.

`key` identifies a step. A session stores the key of the step that it serves, so that a session that
was cut can be recognised and repeated under the same key.
"""

from dataclasses import dataclass
from enum import StrEnum

from harness.artifacts.next_ideas import Idea
from harness.domain.findings import Finding
from harness.domain.statuses import DecisionKind, GateName, Split


class StopReason(StrEnum):
    TARGET = "target"
    BUDGET = "budget"
    PATIENCE = "patience"
    FAILURES = "failures"
    WAITING = "waiting"
    SERVICE_UNAVAILABLE = "service_unavailable"
    """The model service did not answer, for as long as the plan is patient (loop.service_hours)."""
    KEY_REFUSED = "key_refused"
    CREDIT_EMPTY = "credit_empty"
    MODEL_NOT_FOUND = "model_not_found"
    REFUSED = "refused"
    """The model declined, again and again."""
    MALFORMED = "malformed"
    MAX_TOKENS = "max_tokens"
    REJECTED = "rejected"
    """The model service takes no such request."""
    PLAYED = "played"
    """The scenario is played to its end, and no gate found fault."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the next experiment builds on, with what else there was; a decision tells it."""

    parent: str
    reason: str
    alternatives: str


@dataclass(frozen=True, kw_only=True)
class Build:
    """A model-builder session: open experiment number `index`, or continue `experiment`, and train
    it."""

    index: int
    attempt: int
    parent: str | None
    """What the experiment is compared with; None is the trivial predictor."""
    experiment: str | None = None
    """Set when the experiment is already open."""
    findings: tuple[Finding, ...] = ()
    """Of the previous verdict, quoted word for word in the session's first message."""
    choice: Choice | None = None
    """Why it builds on `parent`, where there was a choice."""
    candidates: tuple[Idea, ...] = ()
    """What the previous experiment proposes to try, ranked: the first is the next hypothesis."""

    @property
    def key(self) -> str:
        return f"build-{self.index}-{self.attempt}"


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A run is open and its supervisor is alive: wait for its end."""

    experiment: str

    @property
    def key(self) -> str:
        return f"wait-{self.experiment}"


@dataclass(frozen=True, kw_only=True)
class Recover:
    """A run is open without a supervisor: end its processes and close it by what happened."""

    experiment: str

    @property
    def key(self) -> str:
        return f"recover-{self.experiment}"


@dataclass(frozen=True, kw_only=True)
class Train:
    """The supervisor was lost before every seed was done: launch the outstanding seeds again,
    without a session."""

    experiment: str
    argv: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"train-{self.experiment}"


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    experiment: str
    split: Split

    @property
    def key(self) -> str:
        return f"evaluate-{self.experiment}-{self.split}"


@dataclass(frozen=True, kw_only=True)
class JudgeResult:
    """An oracle session: read the evaluations and write result.md."""

    experiment: str
    index: int
    attempt: int

    @property
    def key(self) -> str:
        return f"judge-{self.index}-{self.attempt}"


@dataclass(frozen=True, kw_only=True)
class Diagnose:
    """A training-checker session that explains the open alarms of one run, whatever agents the plan
    names."""

    experiment: str
    index: int
    run: str
    attempt: int
    """Of all such sessions for the experiment."""
    model: str

    @property
    def key(self) -> str:
        return f"diagnose-{self.index}-{self.run}-{self.attempt}"

    @property
    def name(self) -> str:
        """Of the session."""
        return f"training-{self.model}-checker"


@dataclass(frozen=True, kw_only=True)
class Scout:
    """A research-scout session: find published methods that answer the diagnosis."""

    experiment: str
    index: int
    attempt: int

    @property
    def key(self) -> str:
        return f"scout-{self.index}-{self.attempt}"


@dataclass(frozen=True, kw_only=True)
class WorkOnPhase:
    """A session of the role that the contract names for a phase: find out what it asks for, and
    record it."""

    phase: str
    role: str
    attempt: int
    experiment: None = None
    index: int = 0
    """It is of no experiment."""

    @property
    def key(self) -> str:
        return f"{self.phase}-{self.index}-{self.attempt}"


@dataclass(frozen=True, kw_only=True)
class PassPhase:
    """The phase has its evidence."""

    phase: str

    @property
    def key(self) -> str:
        return f"phase-{self.phase}"


@dataclass(frozen=True, kw_only=True)
class CheckGate:
    experiment: str
    gate: GateName

    @property
    def key(self) -> str:
        return f"check-{self.experiment}-{self.gate}"


@dataclass(frozen=True, kw_only=True)
class Decide:
    """A decision of the harness, with everything that the decision log says about it."""

    experiment: str
    kind: DecisionKind
    verdict: str | None
    context: str
    choice: str
    alternatives: str
    reason: str
    confidence: str

    @property
    def key(self) -> str:
        return f"decide-{self.experiment}-{self.kind}"


@dataclass(frozen=True, kw_only=True)
class Settle:
    """The harness was cut after it recorded a decision and before it moved the experiment: move
    it."""

    experiment: str
    kind: DecisionKind

    @property
    def key(self) -> str:
        return f"settle-{self.experiment}-{self.kind}"


@dataclass(frozen=True, kw_only=True)
class StopLoop:
    reason: StopReason
    detail: str

    @property
    def key(self) -> str:
        return f"stop-{self.reason}"


SessionStep = Build | JudgeResult | Diagnose | Scout | WorkOnPhase
"""Done by a session of one role."""
Step = (
    SessionStep
    | Wait
    | Recover
    | Train
    | Evaluate
    | CheckGate
    | Decide
    | Settle
    | PassPhase
    | StopLoop
)
