"""The numbered table of migrations. Each runs in one transaction with the row that records it.

Facts are never changed by a migration: only tables around them. A migration that changes the form
of a state table, or of what `apply` keeps in one, calls `recreate_state`, which replays the facts.
An existing file is copied aside before the first one.
"""

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

import sqlalchemy as sa

from harness.clock import Clock, iso
from harness.errors import LedgerError
from harness.ledger.database import Database
from harness.ledger.failures import damaged
from harness.ledger.replay import recreate_state
from harness.ledger.schema import APPLICATION_ID, migrations

Migration = Callable[[sa.Connection], None]

# frozen: what the first released ledger looked like; state tables are made by recreate_state
_V1 = (
    "CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
    (
        "CREATE TABLE migrations (version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, at TEXT"
        " NOT NULL)"
    ),
    (
        "CREATE TABLE facts (position INTEGER NOT NULL PRIMARY KEY, writer TEXT NOT NULL, seq"
        " INTEGER NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL, kind TEXT NOT NULL, at TEXT NOT"
        " NULL, data BLOB NOT NULL, UNIQUE (writer, seq))"
    ),
    "CREATE INDEX facts_at ON facts (at)",
    (
        "CREATE TABLE projections (name TEXT NOT NULL PRIMARY KEY, changed INTEGER NOT NULL, "
        "written INTEGER NOT NULL, note JSON)"
    ),
    (
        "CREATE TABLE checklist_rows (number INTEGER NOT NULL PRIMARY KEY, text TEXT NOT NULL,"
        " dirty INTEGER NOT NULL)"
    ),
    "CREATE INDEX checklist_rows_dirty ON checklist_rows (dirty)",
    "CREATE TABLE spooled (name TEXT NOT NULL PRIMARY KEY)",
)


def m001_first_schema(connection: sa.Connection) -> None:
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    for statement in _V1:
        connection.exec_driver_sql(statement)
    recreate_state(connection)


def m002_hand_offs_and_priors(connection: sa.Connection) -> None:
    """Two more state tables, and the rows that tell when their pages are out of date."""
    recreate_state(connection)


def m003_scores_by_seed(connection: sa.Connection) -> None:
    """Summaries hold each seed's value and the interval over rows, which tell a difference from
    noise."""
    recreate_state(connection)


def m004_alarms(connection: sa.Connection) -> None:
    """One more state table."""
    recreate_state(connection)


def m005_training_programs(connection: sa.Connection) -> None:
    """Tables of training programs, their models, and what is served."""
    recreate_state(connection)


def m006_comparisons(connection: sa.Connection) -> None:
    """Summaries hold the last verdict's comparison, and no longer each seed's interval."""
    recreate_state(connection)


def m007_rejected_is_final(connection: sa.Connection) -> None:
    """A model that was rejected stays so, whatever another clone's later facts say."""
    recreate_state(connection)


MIGRATIONS: Mapping[int, Migration] = {
    1: m001_first_schema,
    2: m002_hand_offs_and_priors,
    3: m003_scores_by_seed,
    4: m004_alarms,
    5: m005_training_programs,
    6: m006_comparisons,
    7: m007_rejected_is_final,
}


def schema_version(connection: sa.Connection, path: Path) -> int:
    """0 for an empty database. Raises LedgerDamagedError when the file is another program's."""
    names = set(sa.inspect(connection).get_table_names())
    if not names:
        return 0
    if (
        connection.exec_driver_sql("PRAGMA application_id").scalar() != APPLICATION_ID
        or "migrations" not in names
    ):
        raise damaged(path, "it is a SQLite database, but not one of this harness")
    done = connection.execute(
        sa.select(migrations.c.version, migrations.c.name).order_by(migrations.c.version)
    ).all()
    for place, (version, name) in enumerate(done, 1):
        if version != place or not str(name).startswith(f"m{version:03d}_"):
            raise damaged(
                path, f"its table migrations has version {version} named {name!r} in place {place}"
            )
    if not done:
        raise damaged(path, "its table migrations is empty")
    return len(done)


def migrate(
    database: Database, clock: Clock, table: Mapping[int, Migration] = MIGRATIONS
) -> Path | None:
    """Bring the file to the newest version; the copy made before, if any, is returned.

    Raises LedgerError when the file is newer than this harness.
    """
    copy: Path | None = None
    is_new: bool | None = None  # a file that is being made has nothing to keep between its steps
    while True:
        with database.read() as connection:
            version = schema_version(connection, database.path)
        require_known(version, database.path, table)
        if version == max(table):
            return copy
        is_new = version == 0 if is_new is None else is_new
        if not is_new and copy is None:
            name = f"{database.path.stem}.v{version}-{secrets.token_hex(4)}.backup.db"
            copy = database.path.with_name(name)
            database.backup(copy)
        with database.write() as connection:
            if schema_version(connection, database.path) != version:
                continue  # another process was quicker
            step = table[version + 1]
            step(connection)
            row = {"version": version + 1, "name": step.__name__, "at": iso(clock.now())}
            connection.execute(migrations.insert(), row)


def require_known(version: int, path: Path, table: Mapping[int, Migration] = MIGRATIONS) -> None:
    if version > max(table):
        raise LedgerError(
            f"{path} has schema version {version}; this harness knows versions up to {max(table)}.",
            hint="Upgrade the harness; the file was left as it is.",
            code="ledger_too_new",
        )
