"""All facts from one store to another, between a file and a team's server, either way.

The target is marked while it is filled, so that nobody works with half of a ledger; a migration
that was cut goes on where it stopped. At the end the source is marked: it stands still.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from harness.clock import Clock
from harness.domain.late import later
from harness.domain.team_ledger import Place
from harness.errors import LedgerDamagedError, RefusedError
from harness.ledger.creation import create_database, is_made
from harness.ledger.database import FileDatabase
from harness.ledger.ledger import Ledger
from harness.ledger.schema import TABLES, Row, facts, meta, spooled
from harness.ledger.state_version import MIGRATING, MOVED, make_state, state_version
from harness.ledger.store import Connection, Database
from harness.ledger.verify import verify

if TYPE_CHECKING:
    from harness.ledger import postgres
else:
    postgres = later("harness.ledger.postgres")

_BATCH = 1000
_PATIENCE = 30.0
_WHERE = "SELECT concat(pg_postmaster_start_time(), current_database(), current_schema())"


def migrate(
    source: Ledger, target: Place, *, clock: Clock, switch: Callable[[], None] = lambda: None
) -> int:
    """Copy every fact, `switch` to the target, and mark the source; returns the number that was
    copied now. Cut before the switch it goes on at the next call; later the target is in use.

    Both are verified. Raises RefusedError (not_empty) for a target with other facts, and
    LedgerDamagedError.
    """
    if target == source.place:
        raise RefusedError(
            f"The ledger is at {target} already.",
            hint="Name the other store: a postgresql:// URL, or `file`.",
            code="already_there",
        )
    _require_sound(source.place, source.anchors)
    if not is_made(target, clock):
        create_database(target, writer=source.writer, clock=clock)
    # Held to the end: what is appended meanwhile would be left behind.
    with (
        source.exclusive() as here,
        contextlib.closing(_opened(target, clock)) as database,
    ):
        _require_other(source.place, here, database)
        copied = _copy(here, database, source.writer)
        with database.write() as there:
            make_state(there)
        try:
            _require_sound(target, source.anchors)
        except LedgerDamagedError:
            with database.write() as there:
                there.note_state_version(MIGRATING)
            raise
        switch()
        here.note_state_version(MOVED)
    return copied


def _opened(target: Place, clock: Clock) -> Database:
    """Whatever it holds: `creation.open_database` takes none that is half filled."""
    if isinstance(target, Path):
        return FileDatabase(
            target, clock=clock, read_only=False, busy_seconds=_PATIENCE, network=False
        )
    return postgres.ServerDatabase(target, clock=clock, read_only=False, busy_seconds=_PATIENCE)


def _require_other(place: Place, here: Connection, database: Database) -> None:
    """Two spellings of one schema: it would wait for a lock that it holds itself."""
    if isinstance(place, Path) or isinstance(database.place, Path):
        return
    with database.read() as there:
        if there.value(_WHERE) != here.value(_WHERE):
            return
    raise RefusedError(
        f"{database.place} is the ledger that {place} names: there is nothing to move.",
        hint="To name it otherwise, a person writes `ledger` in .harness/config.toml.",
        code="already_there",
    )


def _copy(here: Connection, database: Database, writer: str) -> int:
    with database.write() as there:
        last = int(there.value("SELECT max(position) FROM facts") or 0)
        version = state_version(there, database.place)
        _require_beginning(here, there, database.place, marked=version in (MIGRATING, MOVED))
        there.note_state_version(MIGRATING)
        if there.value("SELECT value FROM meta") != writer:
            there.run(meta.update("value"), value=writer, key_key="writer")
    copied = 0
    query = "SELECT * FROM facts WHERE position > :last ORDER BY position"
    rows = here.stream(query, last=last)
    while batch := list(itertools.islice(rows, _BATCH)):
        with database.write() as there:
            there.insert(facts, batch)
        copied += len(batch)
    with database.write() as there:
        there.run(f"DELETE FROM {spooled.name}")
        there.insert(spooled, here.rows("SELECT name FROM spooled"))
    return copied


def _require_beginning(here: Connection, there: Connection, place: Place, *, marked: bool) -> None:
    """Raises RefusedError unless the target is empty, or holds what this ledger does; where it is
    `marked` as half filled, also only a beginning of that."""
    own: Row | None = None
    other: Row | None = None
    for held, (own, other) in enumerate(itertools.zip_longest(_all(here), _all(there))):
        if other is None and (marked or held == 0):
            return
        if own != other:
            break
    if own != other:
        raise RefusedError(
            f"{place} is not empty: it holds facts"
            f"{'' if other is None else ' that this ledger has not'}.",
            hint="Name an empty database or schema; `harness ledger merge` joins two ledgers.",
            code="not_empty",
        )


def _all(connection: Connection) -> Iterator[Row]:
    return connection.stream("SELECT * FROM facts ORDER BY position")


def _require_sound(place: Place, anchors: Path) -> None:
    problems = verify(place, anchors)
    if problems:
        raise LedgerDamagedError(
            f"{place}: {problems[0].message}",
            hint="Run `harness ledger verify`; nothing was switched over.",
        )


def grants(schema: str, *, append: str | None, read: str | None) -> list[str]:
    """SQL for the schema's owner: what a role needs that appends, and one that reads. Neither can
    change or remove a fact; the state that facts add up to is made anew at will."""
    lines = []
    roles = [role for role in (append, read) if role is not None]
    for role in roles:
        lines.append(f"GRANT USAGE ON SCHEMA {schema} TO {role};")
        lines.append(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role};")
        # State tables are made anew with each version of them.
        later = f"ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT"
        rights = "SELECT, INSERT, UPDATE, DELETE" if role == append else "SELECT"
        lines.append(f"{later} {rights} ON TABLES TO {role};")
    if append is not None:
        lines.append(f"GRANT INSERT ON {schema}.facts TO {append};")
        lines.append(f"GRANT UPDATE ON {schema}.write_lock TO {append};")
        kept = {facts.name, meta.name}
        names = ", ".join(f"{schema}.{name}" for name in TABLES if name not in kept)
        lines.append(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {names} TO {append};")
    return lines
