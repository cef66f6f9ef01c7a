"""Sessions of agents, and how the loop ended."""

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import sqlalchemy as sa

from harness.domain.statuses import SandboxKind
from harness.errors import NotFoundError, RefusedError
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
    finite,
    log,
    newest_first,
    notes,
    oldest_first,
    require_new,
    without,
    word,
)
from harness.ledger.facts.experiment import find_experiment, summarise
from harness.ledger.schema import JSON, facts, log_columns, metadata, required

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
    driver: dict[str, Any]  # pid, boot, started
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
    outcome: str  # finished, cut, refused, failed
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
class Session:
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


@dataclass(frozen=True, kw_only=True)
class LoopEnded(Note):
    KIND: ClassVar[str] = "loop_ended"
    plan: str
    reason: str  # target, budget, patience, failures, waiting, stopped
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
    process: dict[str, Any]  # the CLI's pid, boot, started; empty when it was not found


sessions_seen = sa.Table(
    "sessions_seen",
    metadata,
    sa.Column("experiment", sa.Text, primary_key=True),
    sa.Column("session", sa.Text, primary_key=True),
    *required(sa.Text, "trace"),
    *log_columns(),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    *required(sa.Text, "role"),
    sa.Column("experiment", sa.Text),
    *required(sa.Text, "step", "sandbox"),
    *required(JSON, "driver"),
    *required(sa.Text, "started_at", "tree"),
    sa.Column("ended_at", sa.Text),
    sa.Column("outcome", sa.Text),
    *required(sa.Text, "detail"),
    *required(sa.Integer, "turns"),
    sa.Column("cost_usd", sa.Float),
    *required(JSON, "usage"),
    *log_columns(),
    sa.Index("sessions_ended", "ended_at"),
)


def _record(row: Row) -> Session:
    return Session(**{part.name: row[part.name] for part in fields(Session)})


class SessionLedger(LedgerPart):
    def sessions(self, *, open_only: bool = False) -> list[Session]:
        """Oldest first."""
        query = sa.select(sessions).order_by(*oldest_first(sessions))
        if open_only:
            query = query.where(sessions.c.ended_at.is_(None))
        return [_record(row) for row in self._rows(query)]

    def session(self, identifier: str) -> Session | None:
        rows = self._rows(sa.select(sessions).where(sessions.c.id == identifier))
        return _record(rows[0]) if rows else None

    def sessions_seen(self, experiment: str) -> set[str]:
        """Ids of the plain sessions that worked in the project while the experiment was open."""
        query = sa.select(sessions_seen.c.session).where(sessions_seen.c.experiment == experiment)
        return {str(row["session"]) for row in self._rows(query)}

    def sessions_began(self) -> list[tuple[SessionBegan, str]]:
        """The plain sessions that hooks told of, newest first, each with its time; at most 200."""
        query = sa.select(notes).where(notes.c.kind == SessionBegan.KIND)
        rows = self._rows(query.order_by(*newest_first(notes)).limit(_MOST_BEGAN))
        return [(SessionBegan(**row["record"]), row["at"]) for row in rows]

    def loop_end(self) -> LoopEnded | None:
        """How the loop ended, or None when it never did or something was begun after that."""
        ends = sa.select(notes).where(notes.c.kind == LoopEnded.KIND)
        with self._database.read():
            rows = self._rows(ends.order_by(*newest_first(notes)).limit(1))
            if not rows:
                return None
            end = rows[0]
            # Times have milliseconds: of facts with the end's own time only its writer's number
            # tells which came later.
            same = sa.and_(
                facts.c.at == end["at"], facts.c.writer == end["writer"], facts.c.seq > end["seq"]
            )
            later = sa.and_(facts.c.kind.in_(_BEGINNINGS), sa.or_(facts.c.at > end["at"], same))
            if self._scalar(sa.select(sa.exists().where(later))):
                return None
            return LoopEnded(**end["record"])

    def loop_ended_at(self) -> str | None:
        """When the loop ended last, whatever was begun since; None when it never did."""
        query = sa.select(sa.func.max(notes.c.at)).where(notes.c.kind == LoopEnded.KIND)
        at: str | None = self._scalar(query)
        return at


FACTS: tuple[type[Fact], ...] = (
    SessionStarted,
    SessionEnded,
    LoopEnded,
    SessionSeen,
    SessionBegan,
)
