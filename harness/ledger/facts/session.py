"""Sessions of agents, and how the loop ended."""

from dataclasses import field, fields
from typing import Any, ClassVar

from harness.domain.late import Late, dataclass
from harness.domain.statuses import SandboxKind
from harness.errors import NotFoundError, RefusedError
from harness.ledger.chain import StoredFact
from harness.ledger.facts.base import (
    NEWEST_FIRST,
    OLDEST_FIRST,
    Body,
    Fact,
    LedgerPart,
    Note,
    Row,
    Rows,
    State,
    existing,
    finite,
    limit,
    listed,
    log,
    require_new,
    without,
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
    keys,
    log_columns,
    optional,
    required,
)

_BEGINNINGS = ("plan_approved", "experiment_opened", "run_registered", "session_started")
"""Kinds of facts after which a loop that had ended is no longer at its end."""


_MOST_BEGAN = 200


@dataclass(frozen=True, kw_only=True)
class SessionStarted(Fact):
    KIND: ClassVar[str] = "session_started"
    MAKES: ClassVar[tuple[str, ...]] = ("session",)
    session: str
    role: str
    experiment: str | None
    # key of the loop's step, e.g. "build-1-1": the same for a session that replaces a cut one
    step: str
    sandbox: str
    driver: dict[str, Any]  # process.identity
    # id of the working tree whose loop leads it; each numbers its own experiments
    tree: str = ""

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        word(SandboxKind, body["sandbox"], "A session's sandbox")
        require_new(state, "sessions", body["session"])

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        row = without(body, "session") | {"id": body["session"], "started_at": fact.at}
        state.insert("sessions", row | {"detail": "", "turns": 0, "usage": {}} | log(fact))


@dataclass(frozen=True, kw_only=True)
class SessionEnded(Fact):
    KIND: ClassVar[str] = "session_ended"
    SPOOLED: ClassVar[bool] = True
    session: str
    outcome: str  # as driver.session.SessionEnding says
    detail: str
    turns: int
    cost_usd: float | None
    usage: dict[str, int] = field(default_factory=dict)

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        row = state.get("sessions", body["session"])
        if row is None:
            raise NotFoundError(
                f"There is no session {body['session']!r}.", hint="Record its start first."
            )
        if row["ended_at"] is not None:
            raise RefusedError(
                f"Session {row['id']} has ended already, at {row['ended_at']}.",
                hint="Nothing to do.",
                code="session_over",
            )

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        existing(state, fact, "sessions", body["session"])
        changes = without(body, "session") | {"ended_at": fact.at}
        state.update(
            "sessions", (body["session"],), changes | {"cost_usd": finite(body["cost_usd"])}
        )


@dataclass(frozen=True, kw_only=True)
class Session(Late):
    """What the start and the end of a session say."""

    id: str
    role: str
    experiment: str | None
    step: str
    sandbox: str
    driver: dict[str, Any]
    started_at: str
    tree: str = ""
    ended_at: str | None = None
    outcome: str | None = None
    detail: str = ""
    turns: int = 0
    cost_usd: float | None = None
    usage: dict[str, int] = field(default_factory=dict)
    """As the CLI counts it."""


@dataclass(frozen=True, kw_only=True)
class LoopEnded(Note):
    KIND: ClassVar[str] = "loop_ended"
    plan: str
    reason: str  # as loop.steps.StopReason says
    detail: str


@dataclass(frozen=True, kw_only=True)
class SessionSeen(Fact):
    """A plain Claude Code session, in no sandbox, worked in the project while the experiment was
    open. Recorded once each, so that removing the traces later changes nothing.

    It lowers every score of the experiment, also those that were recorded before it was seen: a
    session may hide for a while, and say of its own scores that they are another's.
    """

    KIND: ClassVar[str] = "session_seen"
    ROWS: ClassVar[Rows] = Rows.OWN
    experiment: str
    session: str
    trace: str  # command, receipt, transcript

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        find_experiment(state, body["experiment"])

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        experiment = existing(state, fact, "experiments", body["experiment"])
        summarise(state, experiment, open_session=True)
        # Two writers may both have seen it: the first one stays.
        if state.get("sessions_seen", body["experiment"], body["session"]) is None:
            state.insert("sessions_seen", body | log(fact))


@dataclass(frozen=True, kw_only=True)
class SessionBegan(Note):
    """A plain Claude Code session began in the project, in no sandbox: told by its SessionStart
    hook before it did anything. In the chain of facts it cannot be taken away unseen, as receipts
    and transcripts can."""

    KIND: ClassVar[str] = "session_began"
    session: str
    process: dict[str, Any]  # the CLI's process.identity; empty when not found


Table(
    "sessions_seen",
    *keys(TEXT, "experiment", "session"),
    *required(TEXT, "trace"),
    *log_columns(),
)

Table(
    "sessions",
    *keys(TEXT, "id"),
    *required(TEXT, "role"),
    *optional(TEXT, "experiment"),
    *required(TEXT, "step", "sandbox"),
    *required(JSON, "driver"),
    *required(TEXT, "started_at", "tree"),
    *optional(TEXT, "ended_at", "outcome"),
    *required(TEXT, "detail"),
    *required(INTEGER, "turns"),
    *optional(FLOAT, "cost_usd"),
    *required(JSON, "usage"),
    *log_columns(),
    index("sessions_ended", "ended_at"),
)


def _record(row: Row) -> Session:
    return Session(**{part.name: row[part.name] for part in fields(Session)})


_NEWEST_OF_KIND = f"SELECT * FROM notes WHERE kind = :kind ORDER BY {NEWEST_FIRST}"


class SessionLedger(LedgerPart):
    def sessions(self, *, open_only: bool = False) -> list[Session]:
        """Oldest first."""
        among = "WHERE ended_at IS NULL" if open_only else ""
        query = f"SELECT * FROM sessions {among} ORDER BY {OLDEST_FIRST}"
        return [_record(row) for row in self._rows(query)]

    def session(self, identifier: str) -> Session | None:
        rows = self._rows("SELECT * FROM sessions WHERE id = :id", id=identifier)
        return _record(rows[0]) if rows else None

    def sessions_seen(self, experiment: str) -> set[str]:
        """Ids of the plain sessions that worked in the project while the experiment was open."""
        query = "SELECT session FROM sessions_seen WHERE experiment = :experiment"
        return {str(row["session"]) for row in self._rows(query, experiment=experiment)}

    def sessions_began(self) -> list[tuple[SessionBegan, str]]:
        """The plain sessions that hooks told of, newest first, each with its time; at most 200."""
        query = f"{_NEWEST_OF_KIND} {limit(_MOST_BEGAN)}"
        rows = self._rows(query, kind=SessionBegan.KIND)
        return [(SessionBegan(**row["record"]), row["at"]) for row in rows]

    def loop_end(self) -> LoopEnded | None:
        """How the loop ended, or None when it never did or something was begun after that."""
        with self._database.read():
            rows = self._rows(f"{_NEWEST_OF_KIND} LIMIT 1", kind=LoopEnded.KIND)
            if not rows:
                return None
            end = rows[0]
            # Times have milliseconds: of facts with the end's own time only its writer's number
            # tells which came later.
            later = self._rows(
                f"SELECT seq FROM facts WHERE kind IN {listed(_BEGINNINGS)} AND"
                " (at > :at OR (at = :at AND writer = :writer AND seq > :seq)) LIMIT 1",
                at=end["at"],
                writer=end["writer"],
                seq=end["seq"],
            )
            if later:
                return None
            return LoopEnded(**end["record"])

    def loop_ended_at(self) -> str | None:
        """When the loop ended last, whatever was begun since; None when it never did."""
        query = "SELECT max(at) FROM notes WHERE kind = :kind"
        at: str | None = self._value(query, kind=LoopEnded.KIND)
        return at


FACTS: tuple[type[Fact], ...] = (
    SessionStarted,
    SessionEnded,
    LoopEnded,
    SessionSeen,
    SessionBegan,
)
