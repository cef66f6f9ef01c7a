"""Training programs: what was specified, and what a trainer's result was worth."""

from collections.abc import Sequence
from typing import Any, ClassVar

from harness.domain.late import dataclass
from harness.domain.statuses import RunStatus
from harness.errors import RefusedError
from harness.ledger.chain import StoredFact
from harness.ledger.facts.base import (
    OLDEST_FIRST,
    Body,
    Fact,
    LedgerPart,
    Note,
    Readers,
    State,
    existing,
    from_body,
    log,
)
from harness.ledger.facts.experiment import find_experiment
from harness.ledger.facts.run import find_run
from harness.ledger.schema import JSON, TEXT, Table, index, keys, log_columns, required


@dataclass(frozen=True, kw_only=True)
class BenchmarkApproved(Note):
    """A person decided what models are judged by. The newest one of a benchmark and an evaluator
    holds."""

    KIND: ClassVar[str] = "benchmark_approved"
    EXACT: ClassVar[frozenset[str]] = frozenset({"benchmark", "evaluator"})
    benchmark: dict[str, Any]  # path, sha256, rows; kept in the vault under the hash
    evaluator: str | dict[str, Any]  # a name, or {command, code_hash}
    snapshot: str | None  # the code that a command runs in, whole, in the vault
    thresholds: dict[str, float]  # delta, quality, rows
    seeds: Sequence[int]  # a PASS needs a model of each
    sha256: str  # of the canonical JSON of all of the above
    by: str


@dataclass(frozen=True, kw_only=True)
class TrainingSpecified(Fact):
    """The experiment is a training program's: only `posttrain run` starts its runs."""

    KIND: ClassVar[str] = "training_specified"
    EXACT: ClassVar[frozenset[str]] = frozenset({"spec"})
    experiment: str
    spec: dict[str, Any]  # as docs/training-programs.md gives it, without experiment and run
    sha256: str  # of the canonical JSON of `spec`
    by: str
    warnings: Sequence[dict[str, Any]] = ()
    contamination: dict[str, Any] | None = (
        None  # of the benchmark by the rows; None: not looked at
    )

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        find_experiment(state, body["experiment"])
        if state.get("programs", body["experiment"]) is not None:
            raise RefusedError(
                f"{body['experiment']} has a specification already.",
                hint="Open a new experiment.",
                code="id_taken",
            )

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        existing(state, fact, "experiments", body["experiment"])
        state.insert("programs", {"experiment": body["experiment"], "record": body} | log(fact))


@dataclass(frozen=True, kw_only=True)
class Program(TrainingSpecified):
    READ: ClassVar[Readers] = {"warnings": tuple}
    at: str


@dataclass(frozen=True, kw_only=True)
class TrainingJudged(Fact):
    """What the harness thinks of a trainer's result, before the run ends."""

    KIND: ClassVar[str] = "training_judged"
    experiment: str
    run: str
    accepted: bool
    source: str  # stdout, file, import, none
    problems: Sequence[dict[str, Any]]  # {field, expected, actual, reason}
    result: dict[str, Any] | None  # as the trainer gave it, when it was an object
    artifact: str | None  # content hash of what it made, as the harness computed it

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        require_running(state, body)

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        existing(state, fact, "runs", body["experiment"], body["run"])
        state.insert("judgements", {"experiment": body["experiment"], "record": body} | log(fact))


@dataclass(frozen=True, kw_only=True)
class Judgement(TrainingJudged):
    READ: ClassVar[Readers] = {"problems": tuple}
    at: str


Table(
    "programs",
    *keys(TEXT, "experiment"),
    *required(JSON, "record"),
    *log_columns(),
)

Table(
    "judgements",
    *log_columns(key=True),
    *required(TEXT, "experiment"),
    *required(JSON, "record"),
    index("judgements_experiment", "experiment"),
)


def require_running(state: State, body: Body) -> None:
    """A result is judged, and its model registered, only while the run is open."""
    run = find_run(state, body["experiment"], body["run"])
    if run["status"] != RunStatus.RUNNING:
        raise RefusedError(
            f"{body['experiment']}/{body['run']} is {run['status']}; only a running one's result is"
            " judged.",
            hint=f"Look at it with `harness experiment show {body['experiment']}`.",
            code="run_ended",
        )


class ProgramLedger(LedgerPart):
    """Lists are oldest first."""

    def program(self, experiment: str) -> Program | None:
        """The experiment's specification; None when it is no training program."""
        query = "SELECT * FROM programs WHERE experiment = :experiment"
        rows = self._rows(query, experiment=experiment)
        return from_body(Program, rows[0]["record"], at=rows[0]["at"]) if rows else None

    def programs(self) -> list[Program]:
        rows = self._rows(f"SELECT * FROM programs ORDER BY {OLDEST_FIRST}")
        return [from_body(Program, row["record"], at=row["at"]) for row in rows]

    def approved_benchmarks(self) -> list[BenchmarkApproved]:
        return [fact for fact, _ in self._notes(BenchmarkApproved)]

    def judgements(self, experiment: str) -> list[Judgement]:
        query = f"SELECT * FROM judgements WHERE experiment = :experiment ORDER BY {OLDEST_FIRST}"
        rows = self._rows(query, experiment=experiment)
        return [from_body(Judgement, row["record"], at=row["at"]) for row in rows]


FACTS: tuple[type[Fact], ...] = (BenchmarkApproved, TrainingSpecified, TrainingJudged)
