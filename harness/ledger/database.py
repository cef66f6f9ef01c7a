"""Connections and transactions. The only module that opens the database file."""

import contextlib
import json
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.pool import QueuePool

from harness.clock import Clock
from harness.errors import LedgerReadOnlyError
from harness.files import canonical_json
from harness.ledger.failures import is_busy, is_unopenable, translated

T = TypeVar("T")

# SQLite's own waiting a try; the rest is retry_busy's, which is fair between many processes
_BUSY_MS = 200


def to_json(value: Any) -> str:
    return canonical_json(value).decode("utf-8")


class Database:
    """One SQLite file, safe for threads and forks. `read` and `write` nest: inside them the same
    thread shares their transaction."""

    def __init__(
        self, path: Path, *, clock: Clock, read_only: bool, busy_seconds: float, network: bool
    ) -> None:
        self.path = path
        self.read_only = read_only
        self._clock = clock
        self._busy_seconds = busy_seconds
        self._network = network
        self._immutable = False
        self._local = threading.local()
        self._pid = os.getpid()
        self._engine = self._make_engine()

    def close(self) -> None:
        self._engine.dispose()

    def probe(self) -> None:
        """Open one connection and read. Raises LedgerError."""
        with translated(self.path):
            try:
                self._probe_once()
            except sa.exc.DBAPIError as error:
                if (
                    not (self.read_only and is_unopenable(error))
                    or Path(f"{self.path}-wal").exists()
                ):
                    raise
                # A read-only folder: SQLite cannot make its -shm file there. Without a -wal file
                # nobody is writing, so reading with no locks at all is safe.
                self._immutable = True
                self._engine.dispose()
                self._probe_once()

    @contextlib.contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A transaction that sees one state of the database throughout and blocks no writer."""
        current = self._current()
        if current is not None:
            yield current
            return
        with translated(self.path), self._open().connect() as connection:
            begun = retry_busy(
                connection.begin, is_busy=is_busy, clock=self._clock, seconds=self._busy_seconds
            )
            with begun, self._as_current(connection, writing=False):
                yield connection

    @contextlib.contextmanager
    def write(self, *, durable: bool = True) -> Iterator[sa.Connection]:
        """Commits at the end, rolls back on any error. Waits `busy_seconds` for the lock.

        Without `durable` the commit is not synced: for what can be made again from the facts.
        """
        if self.read_only:
            raise LedgerReadOnlyError(
                f"{self.path} was opened for reading only.",
                hint="Use a command that may write the ledger.",
            )
        current = self._current()
        if current is not None:
            if not self._local.writing:
                raise RuntimeError("a write inside a read transaction: open the write first")
            yield current
            return
        with translated(self.path), self._open().connect() as plain:
            # IMMEDIATE takes the write lock now. A deferred transaction that upgrades after a read
            # gets SQLITE_BUSY at once, however long the timeout.
            connection = plain.execution_options(harness_begin="BEGIN IMMEDIATE")
            if not durable:
                _pragma(plain, "synchronous=NORMAL")
            try:
                begun = retry_busy(
                    connection.begin,
                    is_busy=is_busy,
                    clock=self._clock,
                    seconds=self._busy_seconds,
                )
                with begun, self._as_current(connection, writing=True):
                    yield connection
            finally:
                if not durable:
                    _pragma(plain, "synchronous=FULL")

    def backup(self, target: Path) -> None:
        """Copy the committed state to the new file `target`, synced."""
        with translated(self.path), contextlib.closing(self._connect()) as source:
            with contextlib.closing(sqlite3.connect(target)) as copy:
                source.backup(copy)
            descriptor = os.open(target, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def set_journal(self) -> None:
        # WAL needs shared memory, which does not work between machines on a network file system.
        mode = "DELETE" if self._network else "WAL"
        # The switch needs the file alone. While another process has it open, the mode stays: both
        # are safe, and the next opening tries again.
        self._engine.dispose()
        with translated(self.path), contextlib.closing(self._connect()) as connection:
            if connection.execute("PRAGMA journal_mode").fetchone()[0].upper() != mode:
                with contextlib.suppress(sqlite3.OperationalError):
                    connection.execute(f"PRAGMA journal_mode={mode}")

    def _probe_once(self) -> None:
        with self._engine.connect() as connection:
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")

    def _current(self) -> sa.Connection | None:
        return getattr(self._local, "connection", None)

    @contextlib.contextmanager
    def _as_current(self, connection: sa.Connection, *, writing: bool) -> Iterator[None]:
        self._local.connection, self._local.writing = connection, writing
        try:
            yield
        finally:
            self._local.connection, self._local.writing = None, False

    def _open(self) -> sa.Engine:
        # In a forked child SQLite's connections may be neither used nor closed: closing would drop
        # the parent's locks.
        if self._pid != os.getpid():
            self._engine.dispose(close=False)
            self._pid, self._local = os.getpid(), threading.local()
        return self._engine

    def _make_engine(self) -> sa.Engine:
        engine = sa.create_engine(
            "sqlite+pysqlite://",
            creator=self._connect,
            poolclass=QueuePool,
            pool_size=5,
            json_serializer=to_json,
            json_deserializer=json.loads,
        )
        sa.event.listen(engine, "begin", _begin)
        return engine

    def _connect(self) -> sqlite3.Connection:
        options = "immutable=1" if self._immutable else f"mode={'ro' if self.read_only else 'rw'}"
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?{options}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=self._busy_seconds if self._network else _BUSY_MS / 1000,
        )
        try:
            connection.execute(
                "PRAGMA query_only=ON" if self.read_only else "PRAGMA synchronous=FULL"
            )
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("harness_begin", "BEGIN"))


def _pragma(connection: sa.Connection, text: str) -> None:
    """Run a pragma outside any transaction, on the driver's connection."""
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.execute(f"PRAGMA {text}")


def retry_busy(
    attempt: Callable[[], T],
    *,
    is_busy: Callable[[BaseException], bool],
    clock: Clock,
    seconds: float,
) -> T:
    """Call `attempt` until it raises no busy error; after `seconds` that error is raised."""
    end = clock.monotonic() + seconds
    while True:
        try:
            return attempt()
        except sa.exc.DBAPIError as error:
            if not is_busy(error) or clock.monotonic() >= end:
                raise
        # 2 to 50 ms, random: many waiting processes must not wake in step.
        clock.sleep(0.002 + secrets.randbelow(48) / 1000)
