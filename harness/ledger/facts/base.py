"""What every kind of fact is, and what the families of facts stand on.

A family's file holds its facts with their rules and effects, its state tables, the records that
rows are read back as (Evaluation of EvaluationRecorded), and its part of `Ledger`.
"""

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any, ClassVar, Protocol, TypeVar

from harness.domain.findings import Finding
from harness.domain.late import Late, dataclass
from harness.errors import LedgerDamagedError, NotFoundError, RefusedError, UsageError
from harness.ledger.chain import StoredFact
from harness.ledger.schema import JSON, TEXT, Table, index, log_columns, required
from harness.ledger.state import Row as Row
from harness.ledger.state import State as State
from harness.ledger.store import Connection, Database

Body = dict[str, Any]
Readers = Mapping[str, Callable[[Any], Any]]
"""Field -> how its JSON value becomes the field's value."""
F = TypeVar("F", bound="Fact")

LONGEST_LINE = 300
"""Characters of a name or a lesson."""


class Rows(StrEnum):
    """Which rows of CHECKLIST.md a fact puts out of date."""

    NONE = "none"
    NEW = "new"  # it adds one, and its parent's row names it
    OWN = "own"
    WITH_CHILDREN = "with_children"  # children show their change against this experiment


@dataclass(frozen=True, kw_only=True)
class Fact(Late, ABC):
    """The base of all kinds; never stored itself."""

    KIND: ClassVar[str] = ""
    MAKES: ClassVar[tuple[str, ...]] = ()
    """Fields that together name what the fact makes: two writers must not make the same one."""
    SPOOLED: ClassVar[bool] = False
    """It has happened and cannot be observed again: a file keeps it while the ledger is busy."""
    PAGE: ClassVar[str | None] = None
    """The projection that shows it, beside those that show every fact."""
    ROWS: ClassVar[Rows] = Rows.NONE
    READ: ClassVar[Readers] = {}
    EXACT: ClassVar[frozenset[str]] = frozenset()
    """Fields that name files, columns and programs: the others enter as plain text."""

    def body(self) -> Body:
        """The fields as plain JSON values: the fact's bytes depend on nothing else."""
        return asdict(self)  # deep: nested findings become plain, too

    @classmethod
    def require(cls, state: State, body: Body) -> None:
        """The rule of appending it. Raises TransitionError, NotFoundError, RefusedError or
        UsageError."""

    @classmethod
    @abstractmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        """Change the state tables. `body` is parsed from the stored bytes, so the first time and
        every replay see the same values. Raises LedgerDamagedError for a reference to what no
        earlier fact made."""


class Note(Fact):
    """A fact that nothing else is counted from: kept as it is."""

    @classmethod
    def apply(cls, state: State, fact: StoredFact, body: Body) -> None:
        state.insert("notes", {"kind": fact.kind, "record": body} | log(fact))


Table(
    "notes",
    *log_columns(key=True),
    *required(TEXT, "kind"),
    *required(JSON, "record"),
    index("notes_kind", "kind", "at"),
)


class Transaction(Protocol):
    """One open write transaction."""

    @property
    def connection(self) -> Connection: ...

    @property
    def state(self) -> State: ...

    def append(self, fact: Fact) -> StoredFact: ...


class LedgerPart(ABC):
    """What each family's part of `Ledger` uses; `appending.LedgerWrites` implements it."""

    _database: Database
    writer: str

    @abstractmethod
    def transaction(self) -> contextlib.AbstractContextManager[Transaction]:
        """A write transaction; it ends with the block."""

    @abstractmethod
    def append(self, fact: Fact) -> StoredFact:
        """Record one fact in a transaction of its own."""

    def _rows(self, query: str, /, **values: Any) -> list[Row]:
        with self._database.read() as connection:
            return list(connection.rows(query, **values))

    def _value(self, query: str, /, **values: Any) -> Any:
        with self._database.read() as connection:
            return connection.value(query, **values)

    def _notes(self, kind: type[F]) -> list[tuple[F, str]]:
        """All notes of one kind, oldest first, each with its time."""
        query = f"SELECT * FROM notes WHERE kind = :kind ORDER BY {OLDEST_FIRST}"
        rows = self._rows(query, kind=kind.KIND)
        return [(from_body(kind, row["record"]), row["at"]) for row in rows]


OLDEST_FIRST = "at, writer, seq"
"""The order of all facts, the same in every clone."""
NEWEST_FIRST = "at DESC, writer DESC, seq DESC"


def listed(words: Iterable[str]) -> str:
    """A closed vocabulary's words, for IN."""
    return f"({', '.join(repr(str(word)) for word in words)})"


def limit(newest: int | None) -> str:
    """At most so many rows; None for all."""
    return "" if newest is None else f"LIMIT {int(newest)}"


def next_number(
    writer: Transaction, table: str, column: str = "number", where: str = "TRUE", /, **values: Any
) -> int:
    """One more than the highest so far."""
    # Rows are never deleted, so no number is used twice; two writers' clash is found at import.
    query = f"SELECT max({column}) FROM {table} WHERE {where}"
    return int(writer.connection.value(query, **values) or 0) + 1


def from_body(kind: type[F], body: Mapping[str, Any], **more: Any) -> F:
    """The fact or record of `kind` with the fields of `body`, and `more` as they are."""
    read = kind.READ
    values = {name: read[name](value) if name in read else value for name, value in body.items()}
    return kind(**values, **more)


def log(fact: StoredFact) -> Row:
    """The columns that say which fact made a row."""
    return {"at": fact.at, "writer": fact.writer, "seq": fact.seq}


def without(body: Body, *names: str) -> Body:
    return {name: value for name, value in body.items() if name not in names}


def existing(state: State, fact: StoredFact, table: str, *key: Any) -> Row:
    """The row that the fact is about. Raises LedgerDamagedError when no earlier fact made it."""
    row = state.get(table, *key)
    if row is None:
        name = "/".join(str(part) for part in key)
        raise LedgerDamagedError(
            f"Fact {fact.seq} of writer {fact.writer} ({fact.kind}) is about {name} in {table},"
            " which no earlier fact made.",
            hint="Import the text forms of all writers together, or run `harness ledger verify`.",
        )
    return row


def finite(value: Any) -> float | None:
    """A number that columns and comparisons can hold: None for null, text and what is not
    finite."""
    # A bool is an int for Python, and canonical JSON spells NaN and infinities as text.
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def read_interval(value: Sequence[Any] | None) -> tuple[float, float] | None:
    """[low, high] of finite numbers; None for anything else."""
    ends = [finite(end) for end in value or ()]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return None
    return ends[0], ends[1]


def read_findings(value: Sequence[Any]) -> tuple[Finding, ...]:
    return tuple(Finding.from_plain(plain) for plain in value)


def first_finding(plain: list[Body]) -> str | None:
    if not plain:
        return None
    return f"[{plain[0].get('code', '?')}] {plain[0].get('message', '')}".strip()


def tail_number(identifier: str) -> int:
    """The number at the end of "v-000001", "d-0001" or "p-0001"; 0 when there is none."""
    digits = identifier.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


def word(kind: type[StrEnum], value: str, what: str) -> Any:
    """`value` as a member of `kind`. Raises UsageError listing what was expected."""
    try:
        return kind(value)
    except ValueError as error:
        raise UsageError(
            f"{what} is {value!r}; expected one of {', '.join(kind)}.", hint="Correct the word."
        ) from error


def require_new(state: State, table: str, *key: Any) -> None:
    """Raises RefusedError (id_taken) when there is such a row."""
    if state.get(table, *key) is not None:
        raise RefusedError(
            f"{'/'.join(str(part) for part in key)} is in the ledger's {table} already.",
            hint="Ids are never reused: take the next one.",
            code="id_taken",
        )


def require_row(state: State, table: str, identifier: str, listed_by: str) -> Row:
    """Raises NotFoundError."""
    row = state.get(table, identifier)
    if row is None:
        raise NotFoundError(
            f"There is no {table[:-1]} {identifier!r}.", hint=f"`{listed_by}` lists them."
        )
    return row


def require_spelled(check: Callable[[str], int], identifier: str) -> None:
    """Raises UsageError unless `identifier` is spelled as `check` reads it."""
    try:
        check(identifier)
    except ValueError as error:
        raise UsageError(f"{error}.", hint="Ids look like exp-0001 and run-01.") from error


def require_text(name: str, value: Any, longest: int) -> None:
    """Raises UsageError unless it is text that says something, in at most so many characters."""
    if not isinstance(value, str) or not value.strip():
        actual = f"{value!r:.40}"
    elif len(value) > longest:
        actual = f"{len(value)} characters"
    else:
        return
    raise UsageError(
        f"The {name} is {actual}; expected text of 1 to {longest} characters.",
        hint="Shorten it, or write one.",
    )
