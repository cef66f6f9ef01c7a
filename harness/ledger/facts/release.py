"""What left the vault about labels that nobody may read: one fact for each answer of a look."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from harness.domain.grade import Grade
from harness.domain.late import dataclass
from harness.domain.statuses import Split, Tier
from harness.ledger.chain import StoredFact
from harness.ledger.facts.base import (
    OLDEST_FIRST,
    Body,
    Fact,
    LedgerPart,
    Readers,
    Rows,
    State,
    existing,
    from_body,
    log,
    word,
)
from harness.ledger.facts.experiment import find_experiment, summarise
from harness.ledger.schema import (
    FLOAT,
    INTEGER,
    JSON,
    TEXT,
    Table,
    index,
    log_columns,
    optional,
    required,
)


@dataclass(frozen=True, kw_only=True)
class ScoreReleased(Fact):
    """The score over seeds as far as it is told: agents see this, never the exact record."""

    KIND: ClassVar[str] = "score_released"
    ROWS: ClassVar[Rows] = Rows.WITH_CHILDREN
    experiment: str
    split: str
    plan_version: int  # that began the comparison it belongs to
    metric: str
    answer: str  # evaluation.ladder.Answer
    mean: float | None  # rounded down to the step; None when no number is told
    bound: str | None  # "at least", "at most": the mean lies beyond the number
    best: float | None  # validation: the best that was told before
    step: float
    cell: int | None  # the mean in steps, upwards to the better
    grid: str  # of rows, scorer and step: cells of one grid are comparable
    tier: str | None
    better: bool | None  # validation: than its reference, by seeds and rows
    comparison: dict[str, Any] | None  # {against, comparisons, seeds, inconclusive}: nothing exact
    codes: Sequence[str]  # what a look found beside the score
    n_seeds: int
    rows: int
    not_isolated: Sequence[str]
    inputs: str  # hash of all that the answer was made of: the same is not asked twice
    bits: float  # the length of the answer's word
    spent: float  # by the plan, this answer included
    coarse: bool = False  # the bits that were left reached for less than there was to tell
    plan: dict[str, Any] | None = None  # as it was then: {tiers, bits}

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        find_experiment(state, body["experiment"])
        word(Split, body["split"], "A split")

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        experiment = existing(state, fact, "experiments", body["experiment"])
        names = ("experiment", "split", "bits", "grid", "cell")
        row = {name: body[name] for name in names}
        row |= {"plan": experiment["plan"], "record": body}
        state.insert("releases", row | log(fact))
        told = (
            *("answer", "mean", "bound", "best", "step", "tier", "better", "codes"),
            *("n_seeds", "metric", "not_isolated"),
        )
        released = {**experiment["summary"].get("released", {})}
        released[body["split"]] = {name: body[name] for name in told}
        if body.get("coarse"):
            released[body["split"]]["coarse"] = True
        summarise(state, experiment, released=released)


@dataclass(frozen=True, kw_only=True)
class Release(ScoreReleased):
    """A released score as the ledger holds it."""

    READ: ClassVar[Readers] = {
        "split": Split,
        "tier": lambda tier: None if tier is None else Tier(tier),
        "codes": tuple,
        "not_isolated": tuple,
    }
    split: Split
    tier: Tier | None
    at: str

    @property
    def of_own(self) -> str:
        """The part of `inputs` that is about the experiment itself, without its reference."""
        return self.inputs.partition("/")[0]

    @property
    def grade(self) -> Grade:
        return Grade.read(self.not_isolated)


Table(
    "releases",
    *log_columns(key=True),
    *required(TEXT, "plan", "experiment", "split", "grid"),
    *required(FLOAT, "bits"),
    *optional(INTEGER, "cell"),
    *required(JSON, "record"),
    index("releases_plan", "plan"),
    index("releases_experiment", "experiment", "split"),
)


class ReleaseLedger(LedgerPart):
    def releases(self, experiment: str, split: Split | None = None) -> list[Release]:
        """Oldest first."""
        of_split = "" if split is None else "AND split = :split"
        rows = self._rows(
            "SELECT * FROM releases"
            f" WHERE experiment = :experiment {of_split} ORDER BY {OLDEST_FIRST}",
            experiment=experiment,
            split=split and Split(split).value,
        )
        return [from_body(Release, row["record"], at=row["at"]) for row in rows]

    def bits_told(self, plan: str) -> float:
        """What the answers about sealed splits told under a plan's name, in bits."""
        query = "SELECT sum(bits) FROM releases WHERE plan = :plan"
        return float(self._value(query, plan=plan) or 0.0)

    def experiments_told(self, plan: str, split: Split) -> set[str]:
        """Those of a plan's name of which something was told."""
        query = "SELECT DISTINCT experiment FROM releases WHERE plan = :plan AND split = :split"
        return {row["experiment"] for row in self._rows(query, plan=plan, split=split.value)}

    def best_told(self, plan: str, grid: str, split: Split) -> int | None:
        """The best cell that was told on a grid; None while none was."""
        best: int | None = self._value(
            "SELECT max(cell) FROM releases"
            " WHERE plan = :plan AND grid = :grid AND split = :split",
            plan=plan,
            grid=grid,
            split=split.value,
        )
        return best

    def release_score(self, make: Callable[[], ScoreReleased | None]) -> None:
        """Record what `make` answers, made while the write lock is held: two processes cannot both
        spend the last bits."""
        with self.transaction() as writer:
            fact = make()
            if fact is not None:
                writer.append(fact)


FACTS: tuple[type[Fact], ...] = (ScoreReleased,)
