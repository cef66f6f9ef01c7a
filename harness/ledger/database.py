"""A ledger in a file. The only module that opens it.

The standard library does for a file, and nothing has to be loaded to look.
"""

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

from harness.clock import Clock
from harness.ledger.failures import is_busy, is_unopenable, translated
from harness.ledger.schema import APPLICATION_ID, BOOLEAN, JSON, Row
from harness.ledger.store import Connection, Database, DuplicateRowError

T = TypeVar("T")

# SQLite's own waiting a try; the rest is retry_busy's, which is fair between many processes
_BUSY_MS = 200
_IDLE = 5
"""Connections that are kept open between transactions."""

# by the type that a column was declared with
sqlite3.register_converter(JSON, json.loads)
sqlite3.register_converter(BOOLEAN, lambda raw: raw != b"0")


class FileConnection(Connection):
    """One transaction of SQLite."""

    def __init__(self, driver: sqlite3.Connection) -> None:
        self._driver = driver

    def rows(self, sql: str, /, **values: Any) -> Iterator[Row]:
        """Read one by one."""
        try:
            cursor = self._driver.execute(sql, values)
        except sqlite3.IntegrityError as error:
            raise _duplicate(error) from error
        names = [column[0] for column in cursor.description]
        return (dict(zip(names, one, strict=True)) for one in cursor)

    stream = rows

    def run(self, sql: str, /, **values: Any) -> None:
        try:
            self._driver.execute(sql, values)
        except sqlite3.IntegrityError as error:
            raise _duplicate(error) from error

    def tables(self) -> set[str]:
        sql = "SELECT name FROM sqlite_master WHERE type = 'table'"
        names = {str(row["name"]) for row in self.rows(sql)}
        return {name for name in names if not name.startswith("sqlite_")}

    def state_version(self) -> int | None:
        if self.value("PRAGMA application_id") != APPLICATION_ID:
            return None
        return int(self.value("PRAGMA user_version"))

    def note_state_version(self, version: int) -> None:
        self.run(f"PRAGMA user_version = {version}")

    def made(self) -> None:
        self.run(f"PRAGMA application_id = {APPLICATION_ID}")

    def complaints(self) -> list[str]:
        lines = [row["integrity_check"] for row in self.rows("PRAGMA integrity_check")]
        return [f"SQLite's integrity check says: {line}" for line in lines if line != "ok"]


def _duplicate(error: sqlite3.IntegrityError) -> DuplicateRowError:
    return DuplicateRowError(f"{error}", hint="Run `harness ledger verify`.")


class FileDatabase(Database):
    """One SQLite file."""

    def __init__(
        self, path: Path, *, clock: Clock, read_only: bool, busy_seconds: float, network: bool
    ) -> None:
        super().__init__(path, read_only=read_only)
        self.path = path
        self._clock = clock
        self._busy_seconds = busy_seconds
        self._network = network
        self._immutable = False
        self._pid = os.getpid()
        self._idle: list[sqlite3.Connection] = []

    def close(self) -> None:
        self._leave_parent()
        while self._idle:
            self._idle.pop().close()

    def probe(self) -> None:
        """Open one connection and read. Raises LedgerError."""
        with translated(self.path):
            try:
                self._probe_once()
            except sqlite3.Error as error:
                if not (self.read_only and is_unopenable(error)) or self._has_log():
                    raise
                # SQLite cannot make its -shm file here. Without anything in a -wal file nobody is
                # writing, so reading with no locks at all is safe.
                self._immutable = True
                self.close()
                self._probe_once()

    def _has_log(self) -> bool:
        try:
            return os.stat(f"{self.path}-wal").st_size > 0
        except OSError:
            return False

    @property
    def folder(self) -> Path:
        return self.path.parent

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Connection]:
        with (
            translated(self.path),
            self._driver() as driver,
            self._transaction(driver, "BEGIN") as connection,
        ):
            yield connection

    @contextlib.contextmanager
    def _writing(self, *, durable: bool) -> Iterator[Connection]:
        with translated(self.path), self._driver() as driver:
            if not durable:
                driver.execute("PRAGMA synchronous=NORMAL")
            try:
                # IMMEDIATE takes the write lock now. A deferred transaction that upgrades after a
                # read gets SQLITE_BUSY at once, however long the timeout.
                with self._transaction(driver, "BEGIN IMMEDIATE") as connection:
                    yield connection
            finally:
                if not durable:
                    driver.execute("PRAGMA synchronous=FULL")

    def keep_copy(self, label: str) -> None:
        self.backup(self.path.with_name(f"{self.path.stem}.{label}.backup.db"))

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
        self.close()
        with translated(self.path), contextlib.closing(self._connect()) as connection:
            if connection.execute("PRAGMA journal_mode").fetchone()[0].upper() != mode:
                with contextlib.suppress(sqlite3.OperationalError):
                    connection.execute(f"PRAGMA journal_mode={mode}")

    def _probe_once(self) -> None:
        with self._driver() as driver:
            driver.execute("SELECT count(*) FROM sqlite_master").fetchone()

    @contextlib.contextmanager
    def _transaction(self, driver: sqlite3.Connection, begin: str) -> Iterator[Connection]:
        retry_busy(
            lambda: driver.execute(begin),
            is_busy=is_busy,
            clock=self._clock,
            seconds=self._busy_seconds,
        )
        try:
            yield FileConnection(driver)
            driver.execute("COMMIT")
        finally:
            # an error; SQLite itself undoes after some, e.g. on a full disk
            if driver.in_transaction:
                driver.execute("ROLLBACK")

    @contextlib.contextmanager
    def _driver(self) -> Iterator[sqlite3.Connection]:
        """One that no other thread has."""
        self._leave_parent()
        try:
            driver = self._idle.pop()
        except IndexError:
            driver = self._connect()
        try:
            yield driver
        finally:
            if len(self._idle) < _IDLE:
                self._idle.append(driver)
            else:
                driver.close()

    def _leave_parent(self) -> None:
        # In a forked child SQLite's connections may be neither used nor closed: closing would drop
        # the parent's locks.
        if self._pid != os.getpid():
            _ABANDONED.extend(self._idle)
            self._idle, self._local = [], threading.local()
            self._pid = os.getpid()

    def _connect(self) -> sqlite3.Connection:
        options = "immutable=1" if self._immutable else f"mode={'ro' if self.read_only else 'rw'}"
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?{options}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            detect_types=sqlite3.PARSE_DECLTYPES,
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


@contextlib.contextmanager
def scratch() -> Iterator[Connection]:
    """An empty database that nobody else sees: SQLite keeps what is too much for memory in a file
    without a name, which goes with the connection."""
    driver = sqlite3.connect("", isolation_level=None, detect_types=sqlite3.PARSE_DECLTYPES)
    with contextlib.closing(driver):
        driver.execute("PRAGMA journal_mode=OFF")
        driver.execute("BEGIN")
        yield FileConnection(driver)


_ABANDONED: list[sqlite3.Connection] = []
"""Of the process that this one was forked from: kept, for what is collected is closed."""


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
        except sqlite3.Error as error:
            if not is_busy(error) or clock.monotonic() >= end:
                raise
        # 2 to 50 ms, random: many waiting processes must not wake in step.
        clock.sleep(0.002 + secrets.randbelow(48) / 1000)
