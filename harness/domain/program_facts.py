"""The facts of training programs: what was specified, what a trainer's result was worth, what
became of its model.

A model is a checkpoint that a validated result brought; its id is the checkpoint's content hash.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from harness.domain.fact import Fact


@dataclass(frozen=True, kw_only=True)
class TrainingSpecified(Fact):
    """The experiment is a training program's: its runs are started by `posttrain run` and by
    nothing else."""

    KIND: ClassVar[str] = "training_specified"
    experiment: str
    spec: dict[str, Any]  # as docs/training-programs.md gives it, without experiment and run
    sha256: str  # of the canonical JSON of `spec`
    by: str
    warnings: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class TrainingJudged(Fact):
    """What the harness thinks of a trainer's result, before the run ends."""

    KIND: ClassVar[str] = "training_judged"
    experiment: str
    run: str
    accepted: bool
    source: str  # stdout, file, import, none
    problems: list[dict[str, Any]]  # {field, expected, actual, reason}
    result: dict[str, Any] | None  # as the trainer gave it, when it was an object
    artifact: str | None  # content hash of what it made, as the harness computed it


@dataclass(frozen=True, kw_only=True)
class ModelRegistered(Fact):
    KIND: ClassVar[str] = "model_registered"
    model: str
    experiment: str
    run: str
    profile: str
    path: str  # relative to the project; a hint, never trusted
    format: str
    base: dict[str, Any]  # id, family, path, sha256 of the base model


@dataclass(frozen=True, kw_only=True)
class ModelEvaluated(Fact):
    KIND: ClassVar[str] = "model_evaluated"
    evaluation: str  # "me-0001", from the ledger
    model: str
    against: str  # "base", or the content hash of the model that was the baseline
    benchmark: dict[str, Any]  # sha256, rows, evaluator
    mode: str  # prompt_assisted, reduced_prompt
    verdict: str  # PASS, FAIL, INCONCLUSIVE
    reason: str
    baseline: float | None
    candidate: float | None
    delta: float | None
    interval: list[float] | None  # [low, high], 95%, paired bootstrap of the difference over rows
    margin: float | None  # mean of the candidate's margins, where the evaluator gives them
    n: int
    seed: int
    evidence: dict[
        str, str
    ]  # name -> hash of everything that was read, and of the evaluator's code
    problems: list[dict[str, Any]] = field(default_factory=list)
    sandbox: str | None = None  # that the evaluator ran in; unknown before it was recorded


@dataclass(frozen=True, kw_only=True)
class ShadowObserved(Fact):
    """One answer of a model that ran beside the deployed one and was not used."""

    KIND: ClassVar[str] = "shadow_observed"
    model: str
    outcome: str  # accepted, rejected, timed_out, failed, invalid_output
    by: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelMoved(Fact):
    KIND: ClassVar[str] = "model_moved"
    model: str
    before: str
    after: str
    why: str
    by: str
    checks: list[dict[str, Any]]  # {constraint, actual, threshold, passed}
    evidence: dict[str, str]  # name -> hash of every fact and file that the checks read
    decision: str | None  # the person's


@dataclass(frozen=True, kw_only=True)
class ModelServed(Fact):
    """The pointer that `posttrain serve-path` resolves, for one profile."""

    KIND: ClassVar[str] = "model_served"
    profile: str
    model: str | None  # None: nothing is served
    before: str | None
    how: str  # deploy, rollback, clear
    why: str
    by: str
    decision: str | None


PROGRAM_FACTS: tuple[type[Fact], ...] = (
    TrainingSpecified,
    TrainingJudged,
    ModelRegistered,
    ModelEvaluated,
    ShadowObserved,
    ModelMoved,
    ModelServed,
)
