"""A ledger in a team's PostgreSQL: a schema a project, over SQLAlchemy and psycopg. Loaded only
where `ledger` in config.toml names a server.

Facts are written by one at a time: a write transaction first locks the table `write_lock`, so each
chain stays one chain whoever appends. Who may only read cannot hold that lock.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.clock import Clock
from harness.domain.team_ledger import TeamLedger
from harness.errors import FROM, LedgerError, MissingExtraError, NotFoundError
from harness.ledger.schema import BLOB, INTEGER, TEXT, Row, meta
from harness.ledger.state_version import create_tables, require_state_version, update_state
from harness.ledger.store import CommitUnknownError, Connection, Database, DuplicateRowError

try:
    import psycopg
    import sqlalchemy
    from psycopg.types.numeric import FloatLoader, IntLoader
    from sqlalchemy import exc

    from harness.ledger.postgres_failures import lost, translated, unanswered
except ImportError as error:
    raise MissingExtraError(
        f"The ledger is on a PostgreSQL server, and {error.name} is not installed.",
        hint=f"`pip install 'experiment-harness[team]'`, {FROM}",
    ) from error

WRITE_LOCK, VERSION = "write_lock", "store_version"
OWN_TABLES = frozenset({WRITE_LOCK, VERSION})
_IDLE = 5
"""Connections that are kept open between transactions."""
_BATCH = 500
_PASSFILE = "pgpass"
"""Of the state directory, where no agent reads: used where it is there."""


class _NumberLoader(FloatLoader):
    """What PostgreSQL sums whole numbers to is `numeric`: a whole number again."""

    def load(self, data: Any) -> Any:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else super().load(data)


@lru_cache(maxsize=1024)
def _text(sql: str) -> Any:
    return sqlalchemy.text(sql)


class ServerConnection(Connection):
    """One transaction of PostgreSQL."""

    # "C" compares the bytes of UTF-8, as SQLite does: every clone agrees on an order.
    KINDS = {TEXT: 'TEXT COLLATE "C"', INTEGER: "BIGINT", BLOB: "BYTEA"}  # noqa: RUF012

    def __init__(self, driver: sqlalchemy.Connection) -> None:
        self._driver = driver
        self._known = False

    def rows(self, sql: str, /, **values: Any) -> Iterator[Row]:
        return self._rows(sql, values, {})

    def stream(self, sql: str, /, **values: Any) -> Iterator[Row]:
        return self._rows(sql, values, {"stream_results": True, "yield_per": _BATCH})

    def _rows(self, sql: str, values: Row, options: Any) -> Iterator[Row]:
        result = self._execute(sql, values, options)
        names = tuple(result.keys())
        return (dict(zip(names, one, strict=True)) for one in result)

    def run(self, sql: str, /, **values: Any) -> None:
        self._execute(sql, values, {})

    def _execute(self, sql: str, values: Row, options: Any) -> Any:
        try:
            return self._driver.execute(_text(sql), values, execution_options=options)
        except exc.IntegrityError as error:
            raise DuplicateRowError(
                str(error.orig).strip(), hint="Run `harness ledger verify`."
            ) from error

    def tables(self) -> set[str]:
        sql = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        return {str(row["tablename"]) for row in self.rows(sql)} - OWN_TABLES

    def state_version(self) -> int | None:
        # The catalogue is asked once: a table that is missing would end the transaction.
        if not self._known:
            self._known = self.value("SELECT to_regclass(:name)", name=VERSION) is not None
        return int(self.value(f"SELECT state FROM {VERSION}")) if self._known else None

    def note_state_version(self, version: int) -> None:
        self.run(f"UPDATE {VERSION} SET state = :version", version=version)

    def made(self) -> None:
        schema = self.value("SELECT current_schema()")
        self.run(f"CREATE TABLE {WRITE_LOCK} (held BOOLEAN NOT NULL)")
        self.run(f"CREATE TABLE {VERSION} (state BIGINT NOT NULL)")
        self.run(f"INSERT INTO {VERSION} (state) VALUES (0)")
        # Not a sequence: that leaves a hole wherever a transaction is rolled back.
        last = f"SELECT coalesce(max(position), 0) + 1 FROM {schema}.facts"
        head = "CREATE FUNCTION next_position() RETURNS BIGINT LANGUAGE SQL VOLATILE"
        self.run(f"{head} AS '{last}'")
        self.run("ALTER TABLE facts ALTER COLUMN position SET DEFAULT next_position()")

    def complaints(self) -> list[str]:
        found = []
        for name in ("fsync", "full_page_writes"):
            if self.value("SELECT current_setting(:name)", name=name) == "off":
                found.append(
                    f"The server runs with {name} = off: a power cut can take facts back that were"
                    " acknowledged."
                )
        return found


class ServerDatabase(Database):
    """One schema on a server."""

    place: TeamLedger

    def __init__(
        self, place: TeamLedger, *, clock: Clock, read_only: bool, busy_seconds: float
    ) -> None:
        super().__init__(place, read_only=read_only)
        self._clock = clock
        self._busy_seconds = busy_seconds
        self._pid = os.getpid()
        self._met = False
        self._engine = sqlalchemy.create_engine(
            "postgresql+psycopg://",
            creator=self._dial,
            pool_size=_IDLE,
            max_overflow=-1,
            pool_pre_ping=True,
            isolation_level="AUTOCOMMIT",  # the transactions are our own statements
        )

    @property
    def folder(self) -> Path:
        return self.place.folder

    def close(self) -> None:
        self._leave_parent()
        self._engine.dispose()

    def keep_copy(self, label: str) -> None:
        """None: the facts stay as they are, and the state is theirs again by a replay."""

    def is_made(self) -> bool:
        with self.read() as connection:
            return bool(connection.state_version() is not None)

    def create(self, writer: str) -> None:
        """The schema and its tables; of two processes that do so at once the first one's stay."""
        with translated(self.place), self._driver() as driver:
            # No table is there to lock yet.
            begin = "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended("
            with self._transaction(driver, f"{begin}'{self.place.schema}', 0))") as connection:
                schema = f"CREATE SCHEMA IF NOT EXISTS {self.place.schema}"
                if connection.value("SELECT current_schema()") is None:
                    connection.run(schema)
                if connection.state_version() is None:
                    create_tables(connection)
                    connection.insert(meta, [{"key": "writer", "value": writer}])

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Connection]:
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with (
            translated(self.place),
            self._driver() as driver,
            self._transaction(driver, begin) as connection,
        ):
            yield connection

    @contextlib.contextmanager
    def _writing(self, *, durable: bool) -> Iterator[Connection]:
        synced = "on" if durable else "off"
        begin = (
            f"BEGIN; SET LOCAL synchronous_commit = {synced};"
            f" SET LOCAL lock_timeout = {max(1, int(self._busy_seconds * 1000))};"
            f" LOCK TABLE {WRITE_LOCK} IN EXCLUSIVE MODE"
        )
        with (
            translated(self.place),
            self._driver() as driver,
            self._transaction(driver, begin) as connection,
        ):
            yield connection

    @contextlib.contextmanager
    def _transaction(self, driver: sqlalchemy.Connection, begin: str) -> Iterator[Connection]:
        try:
            driver.exec_driver_sql(begin)
            yield ServerConnection(driver)
        except BaseException:
            if not driver.invalidated:
                with contextlib.suppress(exc.DBAPIError):
                    driver.exec_driver_sql("ROLLBACK")
            raise
        self._commit(driver)

    def _commit(self, driver: sqlalchemy.Connection) -> None:
        raw: Any = driver.connection.dbapi_connection
        if raw.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
            driver.exec_driver_sql("ROLLBACK")  # what COMMIT would do without a word
            raise LedgerError(
                f"{self.place} refused a statement; nothing was written.",
                hint="Run `harness ledger verify`.",
            )
        try:
            driver.exec_driver_sql("COMMIT")
        except exc.DBAPIError as error:
            if not lost(error):
                raise
            raise CommitUnknownError(
                f"{self.place} went away before it said whether the facts are stored.",
                hint="Run `harness status` once the server is back: it shows what is there.",
            ) from error

    @contextlib.contextmanager
    def _driver(self) -> Iterator[sqlalchemy.Connection]:
        self._leave_parent()
        driver = self._connected()
        self._met = True
        try:
            yield driver
        finally:
            driver.close()

    def _connected(self) -> sqlalchemy.Connection:
        """Waits for a server that starts, and for one that was there and went away."""
        end = self._clock.monotonic() + self._busy_seconds
        while True:
            try:
                return self._engine.connect()
            except exc.OperationalError as error:
                waits = unanswered(error, met=self._met)
                if not waits or self._clock.monotonic() >= end:
                    raise
            self._clock.sleep(0.05 + secrets.randbelow(100) / 1000)

    def _dial(self) -> Any:
        passfile = self.folder / _PASSFILE
        own: Any = {"passfile": str(passfile)} if passfile.is_file() else {}
        raw = psycopg.connect(
            self.place.url,
            connect_timeout=10,
            application_name="harness",
            options=f"-c search_path={self.place.schema} -c client_encoding=UTF8",
            **own,
        )
        raw.adapters.register_loader("numeric", _NumberLoader)
        raw.adapters.register_loader("int8", IntLoader)
        return raw

    def _leave_parent(self) -> None:
        # A forked child may not speak on its parent's connections.
        if self._pid != os.getpid():
            self._engine.dispose(close=False)
            self._pid = os.getpid()


def open_server(
    place: TeamLedger, *, clock: Clock, read_only: bool, busy_seconds: float
) -> ServerDatabase:
    """As `creation.open_database`."""
    database = ServerDatabase(place, clock=clock, read_only=read_only, busy_seconds=busy_seconds)
    try:
        if not database.is_made():
            raise NotFoundError(
                f"There is no ledger at {place} yet.",
                hint="Approve a plan first: `harness plan approve`; `harness ledger migrate` moves"
                " the facts of a file there.",
                code="ledger_missing",
            )
        if read_only:
            with database.read() as connection:
                require_state_version(connection, place)
        else:
            update_state(database)
    except BaseException:
        database.close()
        raise
    return database


def create_server(place: TeamLedger, *, writer: str, clock: Clock) -> None:
    """As `creation.create_database`."""
    database = ServerDatabase(place, clock=clock, read_only=False, busy_seconds=30.0)
    with contextlib.closing(database):
        database.create(writer)


def is_made(place: TeamLedger, *, clock: Clock) -> bool:
    database = ServerDatabase(place, clock=clock, read_only=True, busy_seconds=5.0)
    with contextlib.closing(database):
        return database.is_made()
