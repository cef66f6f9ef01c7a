"""What keeps a ledger: transactions and, inside one, SQL, whatever database is behind them.

A file of SQLite is `database`, a team's PostgreSQL is `postgres`; the SQL is in words that both
know, with `:name` for values (docs/adr/0023-queries-as-sql.md).
"""

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from harness.domain.team_ledger import Place
from harness.errors import LedgerError, LedgerReadOnlyError
from harness.ledger.schema import Row, Table


class DuplicateRowError(LedgerError):
    """A second row with one key."""

    code = "ledger_duplicate_row"


class CommitUnknownError(LedgerError):
    """The server went away between the order to commit and its answer."""

    code = "ledger_commit_unknown"
    fact: str | None = None
    """The hash of the last fact in it."""


class Connection(ABC):
    """One transaction: what runs SQL, with `:name` for the values that are passed by name."""

    KINDS: ClassVar[Mapping[str, str]] = {}
    """How this database calls the kinds of columns, where it is not by their names."""

    @abstractmethod
    def rows(self, sql: str, /, **values: Any) -> Iterator[Row]:
        """Each as a dictionary."""

    @abstractmethod
    def stream(self, sql: str, /, **values: Any) -> Iterator[Row]:
        """As `rows`, of more than fits into memory."""

    @abstractmethod
    def run(self, sql: str, /, **values: Any) -> None:
        """Raises DuplicateRowError."""

    @abstractmethod
    def tables(self) -> set[str]:
        """The names of all that are there."""

    @abstractmethod
    def state_version(self) -> int | None:
        """0 when it was not noted; None in what is no ledger."""

    @abstractmethod
    def note_state_version(self, version: int) -> None: ...

    @abstractmethod
    def made(self) -> None:
        """Called in a new ledger when its tables are there: marks it as one."""

    @abstractmethod
    def complaints(self) -> list[str]:
        """What the database itself finds wrong with what it keeps."""

    def row(self, sql: str, /, **values: Any) -> Row | None:
        """The first one."""
        return next(self.rows(sql, **values), None)

    def value(self, sql: str, /, **values: Any) -> Any:
        """The first column of the first row; None without a row."""
        row = self.row(sql, **values)
        return None if row is None else next(iter(row.values()))

    def insert(self, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
        """A column that a row leaves out gets what the table has for that."""
        for row in rows:
            self.run(table.insert(row), **table.encoded(row))

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        """What is done inside is undone by an error; the transaction goes on."""
        self.run("SAVEPOINT inner_step")
        try:
            yield
        except BaseException:
            self.run("ROLLBACK TO SAVEPOINT inner_step")
            raise
        finally:
            self.run("RELEASE SAVEPOINT inner_step")


class Database(ABC):
    """Safe for threads and forks. `read` and `write` nest: inside them the same thread shares their
    transaction."""

    def __init__(self, place: Place, *, read_only: bool) -> None:
        self.place = place
        """What messages name."""
        self.read_only = read_only
        self._local = threading.local()

    @property
    @abstractmethod
    def folder(self) -> Path:
        """On this machine, in the state directory: what cannot be recorded yet is kept there."""

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database throughout and blocks no writer."""
        current = self._current()
        if current is not None:
            yield current
            return
        with self._reading() as connection, self._bound(connection, writing=False):
            yield connection

    @contextlib.contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Connection]:
        """Commits at the end, rolls back on any error. Waits `busy_seconds` for the lock.

        Without `durable` the commit is not synced: for what can be made again from the facts.
        """
        if self.read_only:
            raise LedgerReadOnlyError(
                f"{self.place} was opened for reading only.",
                hint="Use a command that may write the ledger.",
            )
        current = self._current()
        if current is not None:
            if not self._local.writing:
                raise RuntimeError("a write inside a read transaction: open the write first")
            yield current
            return
        with (
            self._writing(durable=durable) as connection,
            self._bound(connection, writing=True),
        ):
            yield connection

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def keep_copy(self, label: str) -> None:
        """Before the state tables are made anew: a copy for a person who goes back."""

    @abstractmethod
    def _reading(self) -> contextlib.AbstractContextManager[Connection]: ...

    @abstractmethod
    def _writing(self, *, durable: bool) -> contextlib.AbstractContextManager[Connection]: ...

    def _current(self) -> Connection | None:
        return getattr(self._local, "connection", None)

    @contextlib.contextmanager
    def _bound(self, connection: Connection, *, writing: bool) -> Iterator[None]:
        self._local.connection, self._local.writing = connection, writing
        try:
            yield
        finally:
            self._local.connection, self._local.writing = None, False
