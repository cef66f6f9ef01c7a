"""Everything that a gate reads, gathered by `gates.collect`."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from harness.artifacts.experiment_files import Claim, Diagnosis
from harness.artifacts.metrics_notes import RowTimes
from harness.detectors.alarm import Alarm
from harness.domain.findings import Finding
from harness.domain.late import Late, dataclass
from harness.domain.records import Experiment, Objective, Run
from harness.domain.statuses import GateName, Tier, Verdict
from harness.ledger.facts import Checkpoint, Evaluation, RecordedVerdict


@dataclass(frozen=True, kw_only=True)
class FileEvidence(Late):
    """One file as it was read, once."""

    name: str
    """The artifact's name in the contract."""
    path: str
    """Relative to the project's root."""
    sha256: str | None
    """None when the file is not there or is a link."""
    problems: tuple[Finding, ...] = ()
    """Linked, empty, or unreadable; that it is missing is the gate's own finding."""


@dataclass(frozen=True, kw_only=True)
class CheckpointEvidence(Late):
    checkpoint: Checkpoint
    actual: str | None
    """Content hash now; None when nothing is there."""
    earlier: str | None = None
    """The other run that left the same bytes first, e.g. "exp-0001/run-02"."""
    removed: str | None = None
    """When `harness gc` removed it."""


@dataclass(frozen=True, kw_only=True)
class RunEvidence(Late):
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
    """First and last of the longest stretch of epochs without a checkpoint."""
    starts: int = 0
    """Start rows: several when the command was restarted inside the run."""
    times: RowTimes | None = None
    status_run: str | None = None
    status_state: str | None = None
    checkpoints: tuple[CheckpointEvidence, ...] = ()
    notes: tuple[str, ...] = ()
    """From its metrics: shown, never judged."""
    origins: tuple["RunEvidence", ...] = ()
    """Of the runs that trained the weights that it took: these answer for rows and files."""

    @property
    def name(self) -> str:
        return f"{self.run.experiment}/{self.run.id}"

    @property
    def final(self) -> CheckpointEvidence | None:
        """The checkpoint that evaluations use: the newest that was saved as final."""
        finals = [checkpoint for checkpoint in self.checkpoints if checkpoint.checkpoint.final]
        return finals[-1] if finals else None


@dataclass(frozen=True, kw_only=True)
class ValidationReference(Late):
    verdict: RecordedVerdict | None
    changed: tuple[str, ...] = ()
    """Names of the evidence that changed since."""


@dataclass(frozen=True, kw_only=True)
class GateEvidence(Late):
    gate: GateName
    objective: Objective
    way_out: str | None = None
    """How to get the bits for a look at secret labels; None where a look can be taken."""
    beside_older: str | None = None
    """How to get the bits for comparing with a reference that changed since the score was told;
    None where it did not, or where they are there."""
    checkpoint_every: int | None = None
    """Epochs from one checkpoint to the next; None where epochs are no training (classical-ml)."""
    isolation_required: bool
    experiment: Experiment
    files: tuple[FileEvidence, ...]
    """The experiment's own: hypothesis, config, code, score, result."""
    claims: Mapping[str, Claim]
    """Metric -> the number that result.md claims for it."""
    prose: tuple[Finding, ...] = ()
    """Claims in the body of result.md that do not hold."""
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
    """All registered runs, oldest first."""
    plan_seeds: frozenset[int]
    """Chosen by the harness for any version of the plan."""
    evaluations: tuple[Evaluation, ...]
    """On the gate's split, one a counted run, under the plan version in force."""
    libraries: tuple[Finding, ...] = ()
    """What changed of what predict imports, since these evaluations."""
    ignored_seeds: tuple[Finding, ...] = ()
    """Seeds whose evaluations are of one checkpoint, or have the same answers."""
    frozen_changes: tuple[Finding, ...] = ()
    approved_since: tuple[Finding, ...] = ()
    """What judges and was changed by approvals since the experiment was opened."""
    tampering: tuple[Finding, ...] = ()
    taught: tuple[Finding, ...] = ()
    """What active priors ask for and the experiment does not hold."""
    config_changes: tuple[Finding, ...] = ()
    """What config.yaml says now and did not say when the runs that count were registered."""
    control_changes: tuple[Finding, ...] = ()
    """Control files that changed during this experiment, since a person accepted them."""
    score: Mapping[str, Any] | None = None
    """{metric, split, mean, spread, n_seeds, values, interval, not_isolated}, and of a sealed split
    `released`: what `evaluation.released.released_score` tells."""
    compared: Sequence[Any] | None = None
    """As `evaluation.tries.comparison_inputs`."""
    comparison: Mapping[str, Any] | None = None
    """`evaluation.comparison.released_comparison`; None where only freshness is asked."""
    in_train: Mapping[str, float] | None = None
    """Rows of the split in the training rows, as the approval found them."""
    validation: ValidationReference | None = None
    """Only for the held-out gate."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """Name -> hash of everything above: a change makes the verdict stale."""

    @property
    def released(self) -> Mapping[str, Any] | None:
        """What was told of a score on labels that nobody may read; None where they are readable."""
        return None if self.score is None else self.score.get("released")


@dataclass(frozen=True, kw_only=True)
class GateOutcome(Late):
    verdict: Verdict
    findings: tuple[Finding, ...]
    score: Mapping[str, Any] | None
    tier: Tier | None
    comparison: Mapping[str, Any] | None
