"""The version of the state tables.

State is what the facts add up to, so nothing in it is migrated: where its version differs, the
tables are made anew and the facts are replayed into them.
"""

import secrets
from collections.abc import Iterable

from harness.domain.team_ledger import Place
from harness.errors import LedgerError
from harness.ledger.failures import damaged
from harness.ledger.replay import rebuild_state
from harness.ledger.schema import KEPT, TABLES, Table, facts
from harness.ledger.store import Connection, Database

STATE_VERSION = 21
"""Raise it with every change of a state table, or of what a fact does to one."""


MIGRATING, MOVED = 2**31 - 2, 2**31 - 1
"""In place of a version: facts are being copied there; they were copied on to another store. Above
all versions, so that a harness that does not know them refuses the store as too new."""


def state_version(connection: Connection, place: Place) -> int:
    """0 when it was not noted. Raises LedgerDamagedError for another program's file."""
    version = connection.state_version()
    if version is None or facts.name not in connection.tables():
        raise damaged(place, "it is a SQLite database, but not one of this harness")
    return version


def create_tables(connection: Connection) -> None:
    """All tables of a new file."""
    make_tables(connection, KEPT)
    connection.made()
    make_state(connection)


def require_state_version(connection: Connection, place: Place) -> None:
    """For reading only. Raises LedgerError (ledger_too_old, ledger_too_new)."""
    version = _known_version(connection, place)
    if version != STATE_VERSION:
        raise LedgerError(
            f"{place} has state version {version}; this harness reads version {STATE_VERSION}.",
            hint="Run any command that writes, e.g. `harness ledger rebuild`: it replays the facts"
            " after a backup.",
            code="ledger_too_old",
        )


def update_state(database: Database) -> None:
    """Make older state tables anew, after a backup. Raises LedgerError (ledger_too_new), or
    LedgerDamagedError, changing nothing, when the facts do not fit together."""
    with database.read() as connection:
        version = _known_version(connection, database.place)
    if version == STATE_VERSION:
        return
    # Facts are not touched; the copy is for a person who goes back to the older harness.
    database.keep_copy(f"v{version}-{secrets.token_hex(4)}")
    with database.write() as connection:
        # Asked again: another process may have been quicker.
        if _known_version(connection, database.place) != STATE_VERSION:
            make_state(connection)


def _known_version(connection: Connection, place: Place) -> int:
    version = state_version(connection, place)
    if version == MIGRATING:
        raise LedgerError(
            f"{place} is being filled by `harness ledger migrate`, which did not end.",
            hint="Run it again: it goes on where it stopped.",
            code="ledger_migrating",
        )
    if version == MOVED:
        raise _moved(place)
    if version > STATE_VERSION:
        raise LedgerError(
            f"{place} has state version {version}; this harness knows versions up to"
            f" {STATE_VERSION}.",
            hint="Upgrade the harness; the file was left as it is.",
            code="ledger_too_new",
        )
    return version


def require_not_moved(connection: Connection, place: Place) -> None:
    """Of a ledger that was opened before: raises LedgerError (ledger_moved)."""
    if connection.state_version() == MOVED:
        raise _moved(place)


def _moved(place: Place) -> LedgerError:
    return LedgerError(
        f"The facts of {place} were moved to another store; this one stands still.",
        hint="`ledger` in .harness/config.toml names that store: take in the newest config.toml.",
        code="ledger_moved",
    )


def make_state(connection: Connection) -> None:
    """Drop every table that is not kept, also those that only another version had."""
    kept = {table.name for table in KEPT}
    for name in sorted(connection.tables() - kept):
        quoted = name.replace('"', '""')
        connection.run(f'DROP TABLE "{quoted}"')
    make_tables(connection, TABLES.values())
    rebuild_state(connection)
    connection.note_state_version(STATE_VERSION)


def make_tables(connection: Connection, tables: Iterable[Table]) -> None:
    for statement in (line for table in tables for line in table.ddl(connection.KINDS)):
        connection.run(statement)
