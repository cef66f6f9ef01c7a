"""The facts that the ledger stores: what happened, once, never edited.

One class is one kind; its fields are plain JSON values or what becomes them (findings, tuples).
Hashes are lower-case SHA-256 hex. Times are ISO 8601 UTC strings and are set by the ledger when it
writes the fact. A new kind is a class in its family's file, named in the family's `FACTS`.
"""

from dataclasses import fields

from harness.errors import LedgerDamagedError
from harness.ledger.chain import StoredFact
from harness.ledger.facts import (
    checkpoint,
    control,
    decision,
    evaluation,
    experiment,
    model,
    phase,
    plan,
    prior,
    program,
    release,
    reproduction,
    run,
    session,
)
from harness.ledger.facts.base import Body, Fact, State, from_body
from harness.ledger.facts.checkpoint import Checkpoint, CheckpointRecorded, CheckpointRemoved
from harness.ledger.facts.control import (
    ControlAccepted,
    GateModeSet,
    JudgeRecorded,
    TamperingNoticed,
)
from harness.ledger.facts.decision import (
    BY_HARNESS,
    LONGEST_HAND_OFF,
    Decision,
    DecisionRecorded,
    HandOff,
    HandOffWritten,
    IdsRenamed,
)
from harness.ledger.facts.evaluation import (
    Evaluation,
    EvaluationRecorded,
    HeldOutQueried,
    RecordedVerdict,
    VerdictRecorded,
)
from harness.ledger.facts.experiment import ExperimentMoved, ExperimentOpened, LogImported
from harness.ledger.facts.model import (
    Model,
    ModelEvaluated,
    ModelEvaluation,
    ModelHistory,
    ModelMoved,
    ModelRegistered,
    ModelServed,
    Serving,
    ShadowObserved,
)
from harness.ledger.facts.phase import LONGEST_NOTE, PhaseNoted, PhasePassed, PhaseReopened
from harness.ledger.facts.plan import ApprovedPlan, PlanApproved
from harness.ledger.facts.prior import (
    FalseRefusalTold,
    Prior,
    PriorMoved,
    PriorRecorded,
    PriorStatus,
)
from harness.ledger.facts.program import (
    BenchmarkApproved,
    Judgement,
    Program,
    TrainingJudged,
    TrainingSpecified,
)
from harness.ledger.facts.release import Release, ScoreReleased
from harness.ledger.facts.reproduction import ReproductionJudged
from harness.ledger.facts.run import (
    AlarmRaised,
    RaisedAlarm,
    RunEnded,
    RunRegistered,
    RunResumed,
    RunStarted,
    local_job,
)
from harness.ledger.facts.session import (
    LoopEnded,
    Session,
    SessionBegan,
    SessionEnded,
    SessionSeen,
    SessionStarted,
)

__all__ = [
    "BY_HARNESS",
    "KINDS",
    "LONGEST_HAND_OFF",
    "LONGEST_NOTE",
    "AlarmRaised",
    "ApprovedPlan",
    "BenchmarkApproved",
    "Checkpoint",
    "CheckpointRecorded",
    "CheckpointRemoved",
    "ControlAccepted",
    "Decision",
    "DecisionRecorded",
    "Evaluation",
    "EvaluationRecorded",
    "ExperimentMoved",
    "ExperimentOpened",
    "Fact",
    "FalseRefusalTold",
    "GateModeSet",
    "HandOff",
    "HandOffWritten",
    "HeldOutQueried",
    "IdsRenamed",
    "JudgeRecorded",
    "Judgement",
    "LogImported",
    "LoopEnded",
    "Model",
    "ModelEvaluated",
    "ModelEvaluation",
    "ModelHistory",
    "ModelMoved",
    "ModelRegistered",
    "ModelServed",
    "PhaseNoted",
    "PhasePassed",
    "PhaseReopened",
    "PlanApproved",
    "Prior",
    "PriorMoved",
    "PriorRecorded",
    "PriorStatus",
    "Program",
    "RaisedAlarm",
    "RecordedVerdict",
    "Release",
    "ReproductionJudged",
    "RunEnded",
    "RunRegistered",
    "RunResumed",
    "RunStarted",
    "ScoreReleased",
    "Serving",
    "Session",
    "SessionBegan",
    "SessionEnded",
    "SessionSeen",
    "SessionStarted",
    "ShadowObserved",
    "TamperingNoticed",
    "TrainingJudged",
    "TrainingSpecified",
    "VerdictRecorded",
    "apply",
    "fact_from",
    "local_job",
]

_FAMILIES = (
    plan,
    experiment,
    run,
    checkpoint,
    evaluation,
    release,
    decision,
    prior,
    session,
    control,
    program,
    model,
    reproduction,
    phase,
)
KINDS: dict[str, type[Fact]] = {fact.KIND: fact for family in _FAMILIES for fact in family.FACTS}
"""The closed table of kinds."""


def fact_from(kind: str, body: Body) -> Fact:
    """Raises LedgerDamagedError for an unknown kind or other fields than the kind's."""
    fact = KINDS.get(kind)
    if fact is None:
        raise LedgerDamagedError(
            f"The ledger holds a fact of the unknown kind {kind!r}.",
            hint="It was written by another version of the harness: use that one, then run"
            " `harness ledger verify`.",
        )
    try:
        if unknown := set(body) - {part.name for part in fields(fact)}:
            raise TypeError(f"unexpected fields {sorted(unknown)}")
        return from_body(fact, body)
    except (TypeError, KeyError) as error:
        raise LedgerDamagedError(
            f"A fact of kind {kind} has the wrong fields: {error}.",
            hint="It was written by another version of the harness, or changed: run `harness ledger"
            " verify`.",
        ) from error


def apply(state: State, fact: StoredFact) -> None:
    """Change the state tables; the same facts in the same order give the same rows. Raises
    LedgerDamagedError for an unknown kind, other fields, or a reference to what no fact made."""
    body = fact.body()
    fact_from(fact.kind, body)
    KINDS[fact.kind].apply(state, fact, body)
