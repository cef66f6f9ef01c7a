"""Priors: lessons with a check or a rule, and what became of the rule."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, ClassVar

from harness.domain.late import dataclass
from harness.domain.rules import read_rule
from harness.errors import NotFoundError, RefusedError, UsageError
from harness.ledger.chain import StoredFact
from harness.ledger.facts.base import (
    LONGEST_LINE,
    Body,
    Fact,
    LedgerPart,
    Readers,
    Row,
    State,
    existing,
    from_body,
    log,
    next_number,
    require_new,
    require_row,
    require_text,
    tail_number,
    word,
)
from harness.ledger.facts.decision import LONGEST_HAND_OFF
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

LISTED_BY = "harness priors list"


class PriorStatus(StrEnum):
    """Of a prior; one without a rule as data is active at once."""

    CANDIDATE = "candidate"  # its rule holds nothing yet
    ACTIVE = "active"
    RETIRED = "retired"


PRIOR_MOVES = {
    PriorStatus.CANDIDATE: (PriorStatus.ACTIVE, PriorStatus.RETIRED),
    PriorStatus.ACTIVE: (PriorStatus.RETIRED,),
    PriorStatus.RETIRED: (),
}


@dataclass(frozen=True, kw_only=True)
class PriorRecorded(Fact):
    KIND: ClassVar[str] = "prior_recorded"
    EXACT: ClassVar[frozenset[str]] = frozenset({"check", "enforces"})
    MAKES: ClassVar[tuple[str, ...]] = ("prior",)
    PAGE: ClassVar[str | None] = "priors"
    prior: str  # "p-0001", from the ledger
    lesson: str  # one line
    evidence: str
    rule: str
    check: Sequence[str] | None  # words of a command that ends with 0 as long as the rule holds
    by: str
    supersedes: str | None = None
    enforces: str | None = None  # a rule as data: domain.rules
    answers: str | None = None  # the code of the failure that it came from

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        require_new(state, "priors", body["prior"])
        require_text("lesson", body["lesson"], LONGEST_LINE)
        if len(body["lesson"].splitlines()) > 1:
            raise UsageError(
                "The lesson has several lines; expected one.",
                hint="Put the rest into the evidence.",
            )
        require_text("evidence", body["evidence"], LONGEST_HAND_OFF)
        require_text("rule", body["rule"], LONGEST_HAND_OFF)
        check = body["check"]
        if check is not None and not (
            isinstance(check, list) and check and all(isinstance(part, str) for part in check)
        ):
            raise UsageError(
                f"The check is {check!r:.60}; expected the words of a command.",
                hint="Leave it out or name one.",
            )
        if body.get("enforces") is not None:
            read_rule(body["enforces"])
        if body["supersedes"] is None:
            return
        before = require_row(state, "priors", body["supersedes"], "harness priors list")
        if before["superseded_by"] is not None:
            raise RefusedError(
                f"{before['id']} is superseded by {before['superseded_by']} already.",
                hint=f"Supersede {before['superseded_by']} instead.",
                code="superseded",
            )

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        row = {"id": body["prior"], "number": tail_number(body["prior"]), "record": body}
        rule = body.get("enforces") is not None
        row |= {"status": PriorStatus.CANDIDATE if rule else PriorStatus.ACTIVE}
        row |= {"moves": [], "refusals": []}
        state.insert("priors", row | log(fact))
        if body["supersedes"] is not None:
            existing(state, fact, "priors", body["supersedes"])
            state.update("priors", (body["supersedes"],), {"superseded_by": body["prior"]})


@dataclass(frozen=True, kw_only=True)
class Prior(PriorRecorded):
    READ: ClassVar[Readers] = {"check": lambda check: None if check is None else tuple(check)}
    check: tuple[str, ...] | None
    at: str
    superseded_by: str | None = None
    status: PriorStatus = PriorStatus.ACTIVE
    moves: tuple[Body, ...] = ()
    """{status, by, reason, recurrences, at}, oldest first."""
    refusals: tuple[Body, ...] = ()
    """{by, reason, at} of each time when it refused what was right."""

    @property
    def id(self) -> str:
        return self.prior

    @property
    def in_force(self) -> bool:
        return self.superseded_by is None and self.status is PriorStatus.ACTIVE

    @property
    def active_since(self) -> str | None:
        """When a person activated it last; of one without a rule when it was recorded."""
        if self.status is not PriorStatus.ACTIVE:
            return None
        return self.moves[-1]["at"] if self.moves else self.at


@dataclass(frozen=True, kw_only=True)
class PriorMoved(Fact):
    """A candidate is active, or one is retired, and why."""

    KIND: ClassVar[str] = "prior_moved"
    PAGE: ClassVar[str | None] = "priors"
    prior: str
    status: str
    by: str
    reason: str
    recurrences: int  # failures of its kind while it was active

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        row = require_row(state, "priors", body["prior"], LISTED_BY)
        status = word(PriorStatus, body["status"], "The status")
        require_text("reason", body["reason"], LONGEST_HAND_OFF)
        if status not in PRIOR_MOVES[PriorStatus(row["status"])]:
            raise RefusedError(
                f"{row['id']} is {row['status']}; it cannot become {status}.",
                hint=f"`{LISTED_BY}` shows what each is; a retired one is recorded anew.",
                code="prior_not_movable",
            )

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        row = existing(state, fact, "priors", body["prior"])
        names = ("status", "by", "reason", "recurrences")
        made = {name: body[name] for name in names} | {"at": fact.at}
        changed = {"status": body["status"], "moves": [*row["moves"], made]}
        state.update("priors", (body["prior"],), changed)


@dataclass(frozen=True, kw_only=True)
class FalseRefusalTold(Fact):
    """A person says that an active rule refused what was right."""

    KIND: ClassVar[str] = "false_refusal_told"
    PAGE: ClassVar[str | None] = "priors"
    prior: str
    by: str
    reason: str

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        row = require_row(state, "priors", body["prior"], LISTED_BY)
        require_text("reason", body["reason"], LONGEST_HAND_OFF)
        if row["status"] != PriorStatus.ACTIVE or row["record"].get("enforces") is None:
            raise RefusedError(
                f"{row['id']} enforces nothing now, so it refused nothing.",
                hint=f"`{LISTED_BY}` shows which rules are active.",
                code="prior_not_active",
            )

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        row = existing(state, fact, "priors", body["prior"])
        made = {"by": body["by"], "reason": body["reason"], "at": fact.at}
        state.update("priors", (body["prior"],), {"refusals": [*row["refusals"], made]})


Table(
    "priors",
    *keys(TEXT, "id"),
    *required(INTEGER, "number"),
    *required(TEXT, "status"),
    *required(JSON, "record", "moves", "refusals"),
    *optional(TEXT, "superseded_by"),
    *log_columns(),
    index("priors_number", "number"),
)


class PriorLedger(LedgerPart):
    def priors(self, *, standing: bool = False) -> list[Prior]:
        """By number; with `standing` only those in force: none that a later one supersedes, no
        candidate and none that is retired."""
        query = "SELECT * FROM priors ORDER BY number"
        found = [_prior(row) for row in self._rows(query)]
        return [prior for prior in found if prior.in_force or not standing]

    def prior(self, identifier: str) -> Prior:
        """Raises NotFoundError."""
        found = next((one for one in self.priors() if one.id == identifier), None)
        if found is None:
            raise NotFoundError(
                f"There is no prior {identifier!r}.",
                hint="`harness priors list` shows those that exist.",
            )
        return found

    def record_prior(self, **fields: Any) -> Prior:
        """`fields`: those of PriorRecorded without prior."""
        with self.transaction() as writer:
            identifier = f"p-{next_number(writer, 'priors'):04d}"
            writer.append(PriorRecorded(prior=identifier, **fields))
            row = writer.state.get("priors", identifier)
            assert row is not None
            return _prior(row)


def _prior(row: Row) -> Prior:
    return from_body(
        Prior,
        row["record"],
        at=row["at"],
        superseded_by=row["superseded_by"],
        status=PriorStatus(row["status"]),
        moves=tuple(row["moves"]),
        refusals=tuple(row["refusals"]),
    )


FACTS: tuple[type[Fact], ...] = (PriorRecorded, PriorMoved, FalseRefusalTold)
