"""What is decided and what is handed on: decisions, and hand-offs between sessions."""

from typing import Any, ClassVar

from harness.domain.late import dataclass
from harness.domain.statuses import DecisionKind
from harness.ledger.chain import StoredFact
from harness.ledger.facts.base import (
    LONGEST_LINE,
    NEWEST_FIRST,
    Body,
    Fact,
    LedgerPart,
    Note,
    Readers,
    Row,
    Rows,
    State,
    existing,
    from_body,
    limit,
    log,
    next_number,
    require_new,
    require_row,
    require_text,
    tail_number,
    without,
    word,
)
from harness.ledger.facts.experiment import ExperimentMoved, find_experiment, summarise
from harness.ledger.renames import KIND as RENAMED
from harness.ledger.renames import noted_renames
from harness.ledger.schema import (
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

LONGEST_HAND_OFF = 4000
"""Characters."""
BY_HARNESS = "harness"
"""Of a hand-off that a session's transcript tells, not the session."""


@dataclass(frozen=True, kw_only=True)
class DecisionRecorded(Fact):
    KIND: ClassVar[str] = "decision_recorded"
    MAKES: ClassVar[tuple[str, ...]] = ("decision",)
    PAGE: ClassVar[str | None] = "decision_log"
    ROWS: ClassVar[Rows] = Rows.OWN
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

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        word(DecisionKind, body["kind"], "A decision")
        if body["experiment"] is not None:
            find_experiment(state, body["experiment"])
        for table, identifier in (
            ("verdicts", body["verdict"]),
            ("decisions", body["supersedes"]),
        ):
            if identifier is not None:
                require_row(state, table, identifier, "harness decisions")
        require_new(state, "decisions", body["decision"])

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        row = {"id": body["decision"], "number": tail_number(body["decision"])}
        row |= {"kind": body["kind"], "experiment": body["experiment"], "record": body}
        state.insert("decisions", row | log(fact))
        # How something was run is no decision about the experiment itself.
        if body["experiment"] is not None and body["kind"] != DecisionKind.LOWER:
            experiment = existing(state, fact, "experiments", body["experiment"])
            decision = {"kind": body["kind"], "choice": body["choice"]}
            summarise(state, experiment, decision=decision)


@dataclass(frozen=True, kw_only=True)
class Decision(DecisionRecorded):
    READ: ClassVar[Readers] = {"kind": DecisionKind}
    kind: DecisionKind
    at: str

    @property
    def id(self) -> str:
        return self.decision


@dataclass(frozen=True, kw_only=True)
class IdsRenamed(Note):
    """Ids that this writer gave out before are called otherwise from here on: another clone gave
    them out, too."""

    KIND: ClassVar[str] = RENAMED
    names: dict[str, str]  # old -> new
    by: str


@dataclass(frozen=True, kw_only=True)
class HandOffWritten(Fact):
    """What one session tells the next; a claim, never evidence."""

    KIND: ClassVar[str] = "hand_off_written"
    SPOOLED: ClassVar[bool] = True
    PAGE: ClassVar[str | None] = "hand_offs"
    by: str
    session: str | None
    text: str
    experiment: str | None

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        require_text("hand-off", body["text"], LONGEST_HAND_OFF)
        require_text("name of who hands off", body["by"], LONGEST_LINE)
        if body["experiment"] is not None:
            find_experiment(state, body["experiment"])

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        state.insert("hand_offs", {**body, **log(fact), "hash": fact.hash})


@dataclass(frozen=True, kw_only=True)
class HandOff(HandOffWritten):
    """A hand-off as the ledger holds it."""

    at: str
    hash: str  # of the fact; names the file that shows it


Table(
    "decisions",
    *keys(TEXT, "id"),
    *required(INTEGER, "number"),
    *required(TEXT, "kind"),
    *optional(TEXT, "experiment"),
    *required(JSON, "record"),
    *log_columns(),
    index("decisions_number", "number"),
    index("decisions_experiment", "experiment", "number"),
)

Table(
    "hand_offs",
    *log_columns(key=True),
    *required(TEXT, "hash", "by"),
    *optional(TEXT, "session", "experiment"),
    *required(TEXT, "text"),
    index("hand_offs_at", "at"),
)


class DecisionLedger(LedgerPart):
    def decisions(
        self, experiment: str | None = None, *, newest: int | None = None
    ) -> list[Decision]:
        """Oldest first; `newest` keeps the last so many."""
        of_one = "" if experiment is None else "WHERE experiment = :experiment"
        query = f"SELECT * FROM decisions {of_one} ORDER BY number DESC {limit(newest)}"
        rows = self._rows(query, experiment=experiment)
        return [_decision(row) for row in reversed(rows)]

    def decisions_after(self, number: int) -> list[tuple[int, Decision]]:
        """Decisions with their numbers, from the one after `number`."""
        query = "SELECT * FROM decisions WHERE number > :number ORDER BY number"
        rows = self._rows(query, number=number)
        return [(int(row["number"]), _decision(row)) for row in rows]

    def moved_after(self, decision: str, experiment: str | None) -> bool:
        """Whether the experiment moved after the decision was recorded in this database."""
        # By position, not by time: several facts may carry one millisecond.
        place = (
            "SELECT f.position FROM facts AS f"
            " JOIN decisions AS d ON f.writer = d.writer AND f.seq = d.seq WHERE d.id = :decision"
        )
        query = f"SELECT * FROM facts WHERE kind = :kind AND position > ({place})"
        with self._database.read() as connection:
            renames = noted_renames(connection)
            moves = connection.rows(query, kind=ExperimentMoved.KIND, decision=decision)
            facts = (renames.today(StoredFact(**row)) for row in moves)
            return any(fact.body()["experiment"] == experiment for fact in facts)

    def record_decision(self, **fields: Any) -> Decision:
        """`fields`: those of DecisionRecorded without decision."""
        with self.transaction() as writer:
            identifier = f"d-{next_number(writer, 'decisions'):04d}"
            writer.append(DecisionRecorded(decision=identifier, **fields))
            row = writer.state.get("decisions", identifier)
            assert row is not None
            return _decision(row)

    def hand_offs(self, *, newest: int | None = None, noted: bool = False) -> list[HandOff]:
        """Oldest first; `newest` keeps the last so many. `noted`: by people and agents alone."""
        among = "WHERE by != :harness" if noted else ""
        query = f"SELECT * FROM hand_offs {among} ORDER BY {NEWEST_FIRST} {limit(newest)}"
        rows = reversed(self._rows(query, harness=BY_HARNESS) if noted else self._rows(query))
        return [from_body(HandOff, without(row, "writer", "seq")) for row in rows]


def _decision(row: Row) -> Decision:
    return from_body(Decision, row["record"], at=row["at"])


FACTS: tuple[type[Fact], ...] = (DecisionRecorded, HandOffWritten, IdsRenamed)
