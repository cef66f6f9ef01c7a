"""What several facts add up to: experiments, runs, and what a score is judged by. The record of one
fact stands beside it in harness.ledger.facts."""

from dataclasses import field
from typing import Any

from harness.domain.findings import Finding
from harness.domain.late import Late, dataclass
from harness.domain.statuses import Direction, ExperimentStatus, RunStatus, Tier

LEAST_SEEDS = 3
"""With fewer, nobody knows how much of a difference between two experiments is noise."""

CLASSICAL = "classical-ml"
"""The workflow whose rows are folds or trials, and whose one checkpoint comes at the end."""
TAKEN = "taken"
"""The launcher of a run that trained nothing: it took checkpoints of other runs."""


@dataclass(frozen=True, kw_only=True)
class Tree(Late):
    """The working tree in which an experiment was opened: its files are there."""

    id: str
    """Drawn at random when the tree opened its first experiment or ran its first loop; only its own
    machine knows the folder."""
    worktree: str
    """git's name of the linked worktree; empty for the main one, and without git."""
    branch: str
    commit: str
    """Branch and commit then; empty without a repository, a branch or a commit."""

    @property
    def words(self) -> str:
        """E.g. "worktree trial (branch trial)"; "the main tree (branch main)"."""
        name = f"worktree {self.worktree}" if self.worktree else "the main tree"
        return f"{name} (branch {self.branch})" if self.branch else name


@dataclass(frozen=True, kw_only=True)
class Experiment(Late):
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
    tree: Tree | None = None
    """None: nobody noted it."""
    seeds: int | None = None
    """How many a baseline was opened with; None: as many as the plan says."""


@dataclass(frozen=True, kw_only=True)
class Run(Late):
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
    caller: str | None = None
    """Where its commands came from, `domain.grade.Caller` as text; the one that isolates least."""
    config: str | None = None
    """SHA-256 of the experiment's config.yaml when it was registered; None where nobody looked."""
    job: dict[str, Any] | None = None
    """{launcher, handle} of its last start: who launched it, and what finds it there again."""
    supervisor: dict[str, Any] = field(default_factory=dict)
    started_at: str | None = None
    ended_at: str | None = None
    exit_code: int | None = None
    reason: str = ""
    seconds: float | None = None
    rows: int = 0
    files: dict[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    resources: dict[str, dict[str, float]] = field(default_factory=dict)
    """Figure -> {peak, mean} of what it used of its machine; see artifacts.resources."""

    @property
    def handle(self) -> dict[str, Any]:
        """Empty before the first start."""
        return {} if self.job is None else self.job["handle"]

    @property
    def taken_from(self) -> tuple[str, ...]:
        """The runs that trained its weights, e.g. ("exp-0001/run-02",); empty when it did."""
        taken = self.job is not None and self.job["launcher"] == TAKEN
        return tuple(self.handle["from"]) if taken else ()

    @property
    def never_started(self) -> bool:
        """Whether it ended before its command ran: nothing of an experiment was tried."""
        return self.status is RunStatus.FAILED and self.job is None

    @property
    def pid(self) -> int | None:
        """Of a process on this machine, as are `boot` and `started`."""
        return self.handle.get("pid")

    @property
    def boot(self) -> str | None:
        """Boot id of the machine, so that a reused pid is not mistaken for ours."""
        return self.handle.get("boot")

    @property
    def started(self) -> float | None:
        """The process's create time in seconds, as psutil gives it."""
        return self.handle.get("started")


@dataclass(frozen=True, kw_only=True)
class Objective(Late):
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
        # Tiers rise with their order in the enumeration, whatever the metric's direction.
        reached = [
            tier for tier in Tier if tier in self.tiers and self.reaches(score, self.tiers[tier])
        ]
        return reached[-1] if reached else None
