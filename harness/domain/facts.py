"""The facts that the ledger stores: what happened, once, never edited.

Each class is one kind of fact; its fields are plain JSON values, so that a fact's bytes depend on
nothing else. `KINDS` is the closed table of kinds. Hashes are lower-case SHA-256 hex. Times are ISO
8601 UTC strings and are set by the ledger when it writes the fact.
"""

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from harness.domain.fact import Fact as Fact
from harness.domain.program_facts import PROGRAM_FACTS
from harness.errors import LedgerDamagedError

LONGEST_HAND_OFF = 4000
"""Characters."""


@dataclass(frozen=True, kw_only=True)
class PlanApproved(Fact):
    KIND: ClassVar[str] = "plan_approved"
    name: str
    version: int  # 1 for the first approval of this plan, then 2, 3, ...
    path: str  # of plan.md, relative to the project
    sha256: str  # of plan.md's exact bytes, kept in the vault under this hash
    content: dict[str, Any]  # the validated front matter
    splits: dict[str, Any]  # train, validation, held_out -> {sha256, rows, path | vault}
    scorer: dict[str, Any]  # {name, sha256, files: {relative path: sha256}}
    by: str


@dataclass(frozen=True, kw_only=True)
class ExperimentOpened(Fact):
    KIND: ClassVar[str] = "experiment_opened"
    experiment: str
    plan: str
    plan_version: int
    hypothesis: str  # one line
    parent: str | None
    by: str  # role or person
    session: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExperimentMoved(Fact):
    """A change of an experiment's status."""

    KIND: ClassVar[str] = "experiment_moved"
    experiment: str
    status: str
    why: str


@dataclass(frozen=True, kw_only=True)
class RunRegistered(Fact):
    """Written before anything is launched, so that every launch is visible."""

    KIND: ClassVar[str] = "run_registered"
    experiment: str
    run: str
    seed: int
    attempt: int  # 1 for the first run of this seed, then 2, ...
    argv: list[str]
    code: str  # hash of the code snapshot's manifest (code.json)
    data: dict[str, str]  # split name -> hash of its file
    environment: dict[str, Any]
    sandbox: str
    token: str  # SHA-256 of the run's link token; the token itself is only in the training process
    session: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunStarted(Fact):
    KIND: ClassVar[str] = "run_started"
    experiment: str
    run: str
    pid: int
    boot: str  # boot id of the machine, so that a reused pid is not mistaken for ours
    started: float  # the process's create time as psutil gives it, seconds
    supervisor: dict[str, Any]  # the same three of the supervisor


@dataclass(frozen=True, kw_only=True)
class RunResumed(Fact):
    """A run that had ended without completing is launched again, in its own folder, from where it
    was."""

    KIND: ClassVar[str] = "run_resumed"
    experiment: str
    run: str
    attempt: int  # of its seed
    environment: dict[str, Any]
    session: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunEnded(Fact):
    KIND: ClassVar[str] = "run_ended"
    experiment: str
    run: str
    status: str  # completed, failed, killed, lost, cancelled
    exit_code: int | None
    reason: str  # one sentence
    seconds: float | None  # of all its attempts
    rows: int  # in metrics.jsonl
    files: dict[str, str] = field(
        default_factory=dict
    )  # artifact name -> hash at the end of the run
    findings: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class AlarmRaised(Fact):
    """What a detector said about a run while it went, or when its rows were read again after its
    supervisor died."""

    KIND: ClassVar[str] = "alarm_raised"
    experiment: str
    run: str
    alarm: dict[str, Any]  # detectors.Alarm.plain()


@dataclass(frozen=True, kw_only=True)
class CheckpointRecorded(Fact):
    KIND: ClassVar[str] = "checkpoint_recorded"
    experiment: str
    run: str
    checkpoint: str  # content hash, of a file or of a folder's sorted (path, hash) list
    path: str  # where it lay, relative to the project; a hint, never trusted
    bytes: int
    epoch: int | None
    final: bool  # the one that evaluations use


@dataclass(frozen=True, kw_only=True)
class CheckpointRemoved(Fact):
    """`harness gc` takes a recorded checkpoint off the disk; written before it goes. The record of
    it stays."""

    KIND: ClassVar[str] = "checkpoint_removed"
    experiment: str
    run: str
    checkpoint: str  # content hash, as recorded
    # relative to the project; what is removed: the checkpoint, or the Checkpointer's folder that
    # holds it
    path: str
    sha256: str  # content hash of `path`
    bytes: int  # of `path`
    by: str


@dataclass(frozen=True, kw_only=True)
class HeldOutQueried(Fact):
    """A look at a split that is counted against the plan's query budget; written before the
    look."""

    KIND: ClassVar[str] = "held_out_queried"
    experiment: str
    split: str
    query: int


@dataclass(frozen=True, kw_only=True)
class EvaluationRecorded(Fact):
    KIND: ClassVar[str] = "evaluation_recorded"
    experiment: str
    run: str
    seed: int
    split: str
    metric: str
    value: float | None  # None when the harness could not score: see findings
    n: int
    interval: list[float] | None  # [low, high], 95%, bootstrap over rows
    checkpoint: str
    code: str
    inputs: str
    labels: str
    scorer: str
    predictions: str | None
    query: int
    sandbox: str
    plan_version: int
    baseline: float | None  # the trivial predictor's score on the same rows
    findings: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class VerdictRecorded(Fact):
    KIND: ClassVar[str] = "verdict_recorded"
    verdict_id: str  # "v-000001", from the ledger
    experiment: str
    gate: str
    verdict: str
    findings: list[dict[str, Any]]
    evidence: dict[str, str]  # name -> hash of everything the gate read
    score: (
        dict[str, Any] | None
    )  # {metric, split, mean, spread, n_seeds, values, interval, evidence}
    tier: str | None  # the highest tier reached
    comparison: dict[str, Any] | None  # {against, difference, floor, better}
    shortfall: str | None = (
        None  # the first that the oracle named in result.md; never decides anything
    )
    notes: list[str] = field(
        default_factory=list
    )  # what a reader noticed in the metrics; blocks nothing
    next_planned: str | None = None  # the first idea in next.md; never decides anything


@dataclass(frozen=True, kw_only=True)
class DecisionRecorded(Fact):
    KIND: ClassVar[str] = "decision_recorded"
    decision: str  # "d-0001", from the ledger
    kind: str
    experiment: str | None
    by: str
    context: str
    choice: str
    alternatives: str
    reason: str
    confidence: str  # high, medium, low
    verdict: str | None  # the verdict_id that it rests on
    supersedes: str | None = None


@dataclass(frozen=True, kw_only=True)
class SessionStarted(Fact):
    KIND: ClassVar[str] = "session_started"
    session: str
    role: str
    experiment: str | None
    # key of the loop's step, e.g. "build-1-1": the same for a session that replaces a cut one
    step: str
    sandbox: str
    driver: dict[str, Any]  # pid, boot, started


@dataclass(frozen=True, kw_only=True)
class SessionEnded(Fact):
    KIND: ClassVar[str] = "session_ended"
    session: str
    outcome: str  # finished, cut, refused, failed
    detail: str
    turns: int
    cost_usd: float | None
    usage: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LoopEnded(Fact):
    KIND: ClassVar[str] = "loop_ended"
    plan: str
    reason: str  # target, budget, patience, failures, waiting, stopped
    detail: str


@dataclass(frozen=True, kw_only=True)
class TamperingNoticed(Fact):
    """An audit found that something frozen or recorded is not what it was."""

    KIND: ClassVar[str] = "tampering_noticed"
    what: str
    path: str
    expected: str
    actual: str
    experiment: str | None = None


@dataclass(frozen=True, kw_only=True)
class ControlAccepted(Fact):
    """A person took the control files for what they should be: the digest of the list that the
    audit compares with."""

    KIND: ClassVar[str] = "control_accepted"
    sha256: str  # of the list's files and their digests, as canonical JSON
    files: int
    by: str


@dataclass(frozen=True, kw_only=True)
class LogImported(Fact):
    """What a log of a run that the harness did not start says. It is `logged`: no gate reads it."""

    KIND: ClassVar[str] = "log_imported"
    path: str  # relative to the project where it lies in it
    sha256: str
    bytes: int
    format: str
    experiment: str | None
    runs: list[
        dict[str, Any]
    ]  # run, status, rows, epoch or step, metrics -> {last, smallest, largest, not_finite}
    notes: list[str]
    by: str


@dataclass(frozen=True, kw_only=True)
class HandOffWritten(Fact):
    """What one session tells the next; a claim, never evidence."""

    KIND: ClassVar[str] = "hand_off_written"
    by: str
    session: str | None
    text: str
    experiment: str | None


@dataclass(frozen=True, kw_only=True)
class PriorRecorded(Fact):
    KIND: ClassVar[str] = "prior_recorded"
    prior: str  # "p-0001", from the ledger
    lesson: str  # one line
    evidence: str
    rule: str
    check: list[str] | None  # words of a command that ends with 0 as long as the rule holds
    by: str
    supersedes: str | None = None


KINDS: dict[str, type[Fact]] = {
    kind.KIND: kind
    for kind in (
        PlanApproved,
        ExperimentOpened,
        ExperimentMoved,
        RunRegistered,
        RunStarted,
        RunResumed,
        AlarmRaised,
        RunEnded,
        CheckpointRecorded,
        CheckpointRemoved,
        HeldOutQueried,
        EvaluationRecorded,
        VerdictRecorded,
        DecisionRecorded,
        SessionStarted,
        SessionEnded,
        LoopEnded,
        TamperingNoticed,
        ControlAccepted,
        LogImported,
        HandOffWritten,
        PriorRecorded,
    )
} | {kind.KIND: kind for kind in PROGRAM_FACTS}


def fact_from(kind: str, body: dict[str, Any]) -> Fact:
    """The fact that `body` describes. Raises LedgerDamagedError for an unknown kind or a field too
    many or too few."""
    known = KINDS.get(kind)
    if known is None:
        raise LedgerDamagedError(
            f"The ledger holds a fact of the unknown kind {kind!r}.",
            hint="It was written by a newer harness: upgrade, then run `harness ledger verify`.",
        )
    names = {item.name for item in fields(known)}
    try:
        if extra := set(body) - names:
            raise TypeError(f"unexpected fields {sorted(extra)}")
        return known(**body)
    except TypeError as error:
        raise LedgerDamagedError(
            f"A fact of kind {kind} has the wrong fields: {error}.",
            hint="Run `harness ledger verify`.",
        ) from error
