"""Everything that a gate reads, gathered by `gates.collect`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.artifacts.experiment_files import Claim, Diagnosis
from harness.artifacts.metrics_notes import RowTimes
from harness.detectors.alarm import Alarm
from harness.domain.findings import Finding
from harness.domain.records import Experiment, Objective, Run
from harness.domain.statuses import GateName, Tier, Verdict
from harness.ledger.facts import Checkpoint, Evaluation, RecordedVerdict


@dataclass(frozen=True, kw_only=True)
class FileEvidence:
    """One file as it was read, once."""

    name: str
    """The artifact's name in the contract."""
    path: str
    """Relative to the project's root."""
    sha256: str | None
    """None when the file is not there or is a link."""
    problems: tuple[Finding, ...] = ()
    """Linked, empty, or not in its form; a file that is not there is the gate's own finding."""


@dataclass(frozen=True, kw_only=True)
class CheckpointEvidence:
    checkpoint: Checkpoint
    actual: str | None
    """Content hash now; None when nothing is there."""
    earlier: str | None = None
    """The run of another experiment, or of another seed, that left the same bytes first, e.g.
    "exp-0001/run-02"."""
    removed: str | None = None
    """When `harness gc` removed it, where nothing is there now."""


@dataclass(frozen=True, kw_only=True)
class RunEvidence:
    run: Run
    metrics: FileEvidence
    status: FileEvidence
    evaluation: FileEvidence
    row_runs: frozenset[str] = frozenset()
    """The run ids that metrics rows carry, e.g. {"exp-0001/run-01"}; "" for a row without one."""
    row_tokens: frozenset[str] = frozenset()
    """SHA-256 of the link tokens in start rows."""
    epochs: int = 0
    without_checkpoint: tuple[float, float] | None = None
    """The longest stretch of epochs without a checkpoint: its first and last; None when every epoch
    has one."""
    starts: int = 0
    """Start rows: more than one when the command was started again inside the run."""
    times: RowTimes | None = None
    status_run: str | None = None
    status_state: str | None = None
    checkpoints: tuple[CheckpointEvidence, ...] = ()
    notes: tuple[str, ...] = ()
    """What the reader of its metrics noticed: shown, never judged."""

    @property
    def name(self) -> str:
        return f"{self.run.experiment}/{self.run.id}"

    @property
    def final(self) -> CheckpointEvidence | None:
        """The checkpoint that evaluations use: the newest that was saved as final."""
        finals = [checkpoint for checkpoint in self.checkpoints if checkpoint.checkpoint.final]
        return finals[-1] if finals else None


@dataclass(frozen=True, kw_only=True)
class ValidationReference:
    """What the held-out gate rests on."""

    verdict: RecordedVerdict | None
    changed: tuple[str, ...] = ()
    """Names of the evidence that is not what the verdict read."""


@dataclass(frozen=True, kw_only=True)
class GateEvidence:
    gate: GateName
    objective: Objective
    plan_version: int
    checkpoint_every: int | None = None
    """Epochs that may pass from one checkpoint to the next; None where epochs are no training
    (classical-ml)."""
    isolation_required: bool
    experiment: Experiment
    files: tuple[FileEvidence, ...]
    """The experiment's own files that the contract requires: hypothesis, config, code, score,
    result."""
    claims: Mapping[str, Claim]
    """Metric -> the number that result.md claims for it."""
    prose: tuple[Finding, ...] = ()
    """What the body of result.md claims and does not hold."""
    alarms: Mapping[str, tuple[Alarm, ...]] = field(default_factory=dict)
    """Run id -> its open alarms, of every launched run with some."""
    diagnosis: Diagnosis | None = None
    diagnosis_file: FileEvidence | None = None
    """diagnosis.md, read where there are open alarms."""
    shortfall: str | None = None
    """The first that result.md names: shown, never judged."""
    next_planned: str | None = None
    """The first idea in next.md: shown, never judged."""
    runs: tuple[RunEvidence, ...]
    """The runs that count: see `counted_runs`."""
    launched: tuple[Run, ...] = ()
    """All registered runs of the experiment, oldest first, whether they count or not."""
    plan_seeds: frozenset[int]
    """Those that the harness chose for the plan, in any of its versions."""
    evaluations: tuple[Evaluation, ...]
    """Of the gate's split: one a counted run, of its final checkpoint under the plan version in
    force."""
    ignored_seeds: tuple[Finding, ...] = ()
    """Seeds whose evaluations are of one checkpoint."""
    frozen_changes: tuple[Finding, ...] = ()
    tampering: tuple[Finding, ...] = ()
    control_changes: tuple[Finding, ...] = ()
    """Control files that changed while this experiment was worked on, since a person accepted
    them."""
    score: Mapping[str, Any] | None = None
    """{metric, split, mean, spread, n_seeds, values, interval, evidence}; None without a recomputed
    value."""
    parent_score: Mapping[str, Any] | None = None
    """At the held-out gate: the parent's own score there; None when it has none."""
    compared: Sequence[Any] | None = None
    """What the comparison depends on, as `evaluation.tries.comparison_inputs`."""
    comparison: Mapping[str, Any] | None = None
    """`evaluation.comparison.compared`; None without a score, and where only freshness is asked."""
    in_train: Mapping[str, float] | None = None
    """What of the split the training rows hold, as `data_checks.review.contamination`; None in
    approvals that did not look."""
    validation: ValidationReference | None = None
    """Only for the held-out gate."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """Name -> hash of everything above; a verdict is stale when one of them changed."""


@dataclass(frozen=True, kw_only=True)
class GateOutcome:
    verdict: Verdict
    findings: tuple[Finding, ...]
    score: Mapping[str, Any] | None
    tier: Tier | None
    comparison: Mapping[str, Any] | None
