"""Experiments: opened once, moved from status to status, and the logs of foreign runs beside them.

An experiment's `summary` collects what CHECKLIST.md shows:

    verdict    {id, gate, verdict, tier} of the last verdict
    scores     split -> {mean, n_seeds, not_isolated, metric} of the last verdict on it with a score
    comparison {against, difference, better, p_corrected, comparisons, no_longer, labels} of the
               last verdict that compared
    evaluated  split -> seed -> {value, sealed, not_isolated} of the last evaluation
    released   split -> what was told last of a sealed split's score
    baseline   split -> the trivial predictor's score
    shortfall  first finding of the last verdict, else the oracle's first; before any verdict: of
               the last run
    decision   {kind, choice} of the last decision
    child      the last experiment that has it as its parent
    next_planned  first idea of next.md at the last verdict; absent before a verdict says one
    open_session  true once a plain session was seen while the experiment was open; absent before
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, fields
from typing import Any, ClassVar

from harness.domain.grade import Grade
from harness.domain.ids import experiment_id, experiment_number, no_experiment
from harness.domain.late import dataclass
from harness.domain.records import Experiment, Tree
from harness.domain.statuses import (
    Direction,
    ExperimentStatus,
    Split,
    require_experiment_transition,
    require_open_experiment,
)
from harness.ledger.chain import StoredFact
from harness.ledger.facts.base import (
    Body,
    Fact,
    LedgerPart,
    Note,
    Row,
    Rows,
    State,
    existing,
    limit,
    listed,
    next_number,
    require_new,
    require_spelled,
    without,
    word,
)
from harness.ledger.facts.plan import IN_FORCE
from harness.ledger.schema import (
    FLOAT,
    INTEGER,
    JSON,
    TEXT,
    Table,
    Unique,
    index,
    keys,
    optional,
    required,
)
from harness.ledger.state import SqlState

_SUMMARY: Body = {
    "verdict": None,
    "scores": {},
    "comparison": None,
    "evaluated": {},
    "released": {},
    "baseline": {},
    "shortfall": None,
    "decision": None,
    "child": None,
}


@dataclass(frozen=True, kw_only=True)
class ExperimentOpened(Fact):
    KIND: ClassVar[str] = "experiment_opened"
    MAKES: ClassVar[tuple[str, ...]] = ("experiment",)
    ROWS: ClassVar[Rows] = Rows.NEW
    experiment: str
    plan: str
    plan_version: int
    hypothesis: str  # one line
    parent: str | None
    by: str  # role or person
    session: str | None = None
    tree: dict[str, str] | None = None  # where its files are: {id, worktree, branch, commit}
    seeds: int | None = None  # of a baseline: how many were asked for; else the plan's

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        require_spelled(experiment_number, body["experiment"])
        require_new(state, "experiments", body["experiment"])
        if body["parent"] is not None:
            find_experiment(state, body["parent"])

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        row = {
            **without(body, "experiment"),
            "id": body["experiment"],
            "number": experiment_number(body["experiment"]),
            "status": ExperimentStatus.OPEN.value,
            "opened_at": fact.at,
            "summary": dict(_SUMMARY),
        }
        state.insert("experiments", row)
        if body["parent"] is not None:
            parent = existing(state, fact, "experiments", body["parent"])
            summarise(state, parent, child=body["experiment"])


@dataclass(frozen=True, kw_only=True)
class ExperimentMoved(Fact):
    """A change of an experiment's status."""

    KIND: ClassVar[str] = "experiment_moved"
    ROWS: ClassVar[Rows] = Rows.OWN
    experiment: str
    status: str
    why: str

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        row = find_experiment(state, body["experiment"])
        after = word(ExperimentStatus, body["status"], "An experiment's status")
        require_experiment_transition(row["id"], ExperimentStatus(row["status"]), after)

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        existing(state, fact, "experiments", body["experiment"])
        state.update("experiments", (body["experiment"],), {"status": body["status"]})


@dataclass(frozen=True, kw_only=True)
class LogImported(Note):
    """The log of a run that the harness did not start. It is `logged`: no gate reads it."""

    KIND: ClassVar[str] = "log_imported"
    EXACT: ClassVar[frozenset[str]] = frozenset({"path"})
    path: str  # relative to the project where it lies in it
    sha256: str
    bytes: int
    format: str
    experiment: str | None
    runs: list[dict[str, Any]]  # run, status, rows, epoch or step, and metrics:
    # name -> {last, smallest, largest, not_finite}
    notes: list[str]
    by: str
    experiments: list[dict[str, Any]] | None = None  # commit, value, memory, status, description

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        if body["experiment"] is not None:
            find_experiment(state, body["experiment"])


experiments = Table(
    "experiments",
    *keys(TEXT, "id"),
    *required(INTEGER, "number"),
    *required(TEXT, "status", "hypothesis"),
    *optional(TEXT, "parent"),
    *required(TEXT, "plan"),
    *required(INTEGER, "plan_version"),
    *required(TEXT, "by"),
    *optional(TEXT, "session"),
    *required(TEXT, "opened_at"),
    *optional(JSON, "tree"),
    *optional(INTEGER, "seeds"),
    # the last verdict's mean on that split, for the search of the best
    *optional(FLOAT, "validation", "held_out"),
    *required(JSON, "summary"),
    Unique(("number",)),
    index("experiments_status", "status"),
    index("experiments_parent", "parent"),
    index("experiments_validation", "plan", "status", "validation"),
    index("experiments_held_out", "plan", "status", "held_out"),
)


def find_experiment(state: State, identifier: str) -> Row:
    """Raises NotFoundError."""
    row = state.get("experiments", identifier)
    if row is None:
        raise no_experiment(identifier)
    return row


def require_open(row: Row) -> None:
    """Raises RefusedError for an experiment that was decided."""
    require_open_experiment(row["id"], row["status"])


def summarise(state: State, experiment: Row, **changes: Any) -> None:
    summary = {**experiment["summary"], **changes}
    if summary.get("open_session"):
        summary |= {
            "scores": _lowered(summary["scores"]),
            "evaluated": {on: _lowered(by) for on, by in summary["evaluated"].items()},
        }
    state.update("experiments", (experiment["id"],), {"summary": summary})


def _lowered(scores: Body) -> Body:
    """Each with the session among what was not isolated: before the session was seen or after."""
    return {
        name: {**score, "not_isolated": Grade.read(score["not_isolated"]).and_session.codes}
        for name, score in scores.items()
    }


def _record(row: Row) -> Experiment:
    values = {part.name: row[part.name] for part in fields(Experiment)}
    tree = None if row["tree"] is None else Tree(**row["tree"])
    return Experiment(**{**values, "status": ExperimentStatus(row["status"]), "tree": tree})


class ExperimentLedger(LedgerPart):
    def experiment(self, identifier: str) -> Experiment:
        """Raises NotFoundError."""
        with self._database.read() as connection:
            return _record(find_experiment(SqlState(connection), identifier))

    def summary(self, experiment: str) -> dict[str, Any]:
        """What CHECKLIST.md shows beside the columns: see this module. Raises NotFoundError."""
        with self._database.read() as connection:
            row = find_experiment(SqlState(connection), experiment)
        return dict(row["summary"])

    def experiments(
        self, *, newest: int | None = None, statuses: Iterable[ExperimentStatus] | None = None
    ) -> list[Experiment]:
        """By number; `newest` keeps the last so many."""
        among = ""
        if statuses is not None:
            words = listed(ExperimentStatus(status) for status in statuses)
            among = f"WHERE status IN {words}"
        query = f"SELECT * FROM experiments {among} ORDER BY number DESC {limit(newest)}"
        return [_record(row) for row in reversed(self._rows(query))]

    def best_experiment(
        self, plan: str, split: Split, direction: Direction, status: ExperimentStatus
    ) -> str | None:
        """The best by the last verdict's score on `split`; the oldest of equals."""
        column = "held_out" if split == Split.HELD_OUT else "validation"
        order = "DESC" if direction == Direction.MAXIMIZE else "ASC"
        identifier: str | None = self._value(
            "SELECT id FROM experiments"
            f" WHERE plan = :plan AND status = :status AND {column} IS NOT NULL"
            f" ORDER BY {column} {order}, number LIMIT 1",
            plan=plan,
            status=status.value,
        )
        return identifier

    def open_experiment(
        self,
        *,
        hypothesis: str,
        parent: str | None,
        by: str,
        session: str | None = None,
        reserve: Callable[[str], bool] | None = None,
        of_plan: bool = True,
        tree: Tree | None = None,
        seeds: int | None = None,
    ) -> Experiment:
        """The next experiment; its number is never used again.

        `reserve` is called with each candidate id under the write lock: it makes the folder, or
        returns False when one exists, e.g. of a lost ledger; then the number is skipped. Without
        `of_plan` it is a training program's, which has its own budget and benchmark.
        """
        with self.transaction() as writer:
            number = next_number(writer, "experiments")
            while reserve is not None and not reserve(experiment_id(number)):
                number += 1
            latest = writer.connection.row(IN_FORCE, own=self.writer)
            plan = latest if of_plan else None
            identifier = experiment_id(number)
            writer.append(
                ExperimentOpened(
                    experiment=identifier,
                    plan=plan["name"] if plan else "",
                    plan_version=plan["version"] if plan else 0,
                    hypothesis=hypothesis,
                    parent=parent,
                    by=by,
                    session=session,
                    tree=None if tree is None else asdict(tree),
                    seeds=seeds,
                )
            )
            return _record(find_experiment(writer.state, identifier))

    def move_experiment(self, experiment: str, status: ExperimentStatus, why: str) -> StoredFact:
        return self.append(
            ExperimentMoved(experiment=experiment, status=ExperimentStatus(status).value, why=why)
        )

    def imported_logs(self, experiment: str) -> list[dict[str, Any]]:
        """The bodies of `LogImported`, oldest first, each with its time as `at`."""
        logs = [fact.body() | {"at": at} for fact, at in self._notes(LogImported)]
        return [body for body in logs if body["experiment"] == experiment]


FACTS: tuple[type[Fact], ...] = (ExperimentOpened, ExperimentMoved, LogImported)
