"""The version of the state tables.

State is what the facts add up to, so nothing in it is migrated: where its version differs, the
tables are made anew and the facts are replayed into them.
"""

import secrets
from collections.abc import Iterable
from pathlib import Path

from harness.errors import LedgerError
from harness.ledger.database import Connection, Database
from harness.ledger.failures import damaged
from harness.ledger.replay import rebuild_state
from harness.ledger.schema import APPLICATION_ID, KEPT, TABLES, Table, facts

STATE_VERSION = 19
"""Raise it with every change of a state table, or of what a fact does to one."""


def state_version(connection: Connection, path: Path) -> int:
    """0 when it was not noted. Raises LedgerDamagedError for another program's file."""
    is_ours = connection.value("PRAGMA application_id") == APPLICATION_ID
    if not is_ours or facts.name not in connection.tables():
        raise damaged(path, "it is a SQLite database, but not one of this harness")
    return int(connection.value("PRAGMA user_version"))


def create_tables(connection: Connection) -> None:
    """All tables of a new file."""
    connection.run(f"PRAGMA application_id = {APPLICATION_ID}")
    make_tables(connection, KEPT)
    _make_state(connection)


def require_state_version(connection: Connection, path: Path) -> None:
    """For reading only. Raises LedgerError (ledger_too_old, ledger_too_new)."""
    version = _known_version(connection, path)
    if version != STATE_VERSION:
        raise LedgerError(
            f"{path} has state version {version}; this harness reads version {STATE_VERSION}.",
            hint="Run any command that writes, e.g. `harness ledger rebuild`: it replays the facts"
            " after a backup.",
            code="ledger_too_old",
        )


def update_state(database: Database) -> None:
    """Make older state tables anew, after a backup. Raises LedgerError (ledger_too_new), or
    LedgerDamagedError, changing nothing, when the facts do not fit together."""
    with database.read() as connection:
        version = _known_version(connection, database.path)
    if version == STATE_VERSION:
        return
    name = f"{database.path.stem}.v{version}-{secrets.token_hex(4)}.backup.db"
    # Facts are not touched; the copy is for a person who goes back to the older harness.
    database.backup(database.path.with_name(name))
    with database.write() as connection:
        # Asked again: another process may have been quicker.
        if _known_version(connection, database.path) != STATE_VERSION:
            _make_state(connection)


def _known_version(connection: Connection, path: Path) -> int:
    version = state_version(connection, path)
    if version > STATE_VERSION:
        raise LedgerError(
            f"{path} has state version {version}; this harness knows versions up to"
            f" {STATE_VERSION}.",
            hint="Upgrade the harness; the file was left as it is.",
            code="ledger_too_new",
        )
    return version


def _make_state(connection: Connection) -> None:
    """Drop every table that is not kept, also those that only another version had."""
    kept = {table.name for table in KEPT}
    for name in sorted(connection.tables() - kept):
        quoted = name.replace('"', '""')
        connection.run(f'DROP TABLE "{quoted}"')
    make_tables(connection, TABLES.values())
    rebuild_state(connection)
    connection.run(f"PRAGMA user_version = {STATE_VERSION}")


def make_tables(connection: Connection, tables: Iterable[Table]) -> None:
    for statement in (line for table in tables for line in table.ddl):
        connection.run(statement)
