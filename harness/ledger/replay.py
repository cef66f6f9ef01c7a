"""Replaying facts: the state tables made again from nothing."""

from collections.abc import Iterator

from harness.errors import LedgerDamagedError
from harness.ledger.chain import StoredFact
from harness.ledger.facts import apply
from harness.ledger.renames import read_renames
from harness.ledger.schema import PROJECTIONS, Row, projections
from harness.ledger.state import SqlState, state_tables
from harness.ledger.store import Connection, DuplicateRowError


def stored(row: Row) -> StoredFact:
    """Raises LedgerDamagedError for bytes that were made text: no harness writes that."""
    if not isinstance(row["data"], bytes):
        name = f"Fact {row['seq']} of writer {row['writer']} ({row['kind']})"
        raise LedgerDamagedError(
            f"{name} holds {type(row['data']).__name__}, not bytes.",
            hint=(
                "Restore the ledger from a backup, or move it away and run `harness ledger import`."
            ),
        )
    return StoredFact(**row)


def facts_in_order(connection: Connection) -> Iterator[StoredFact]:
    """By (time, writer, number): every clone agrees on this order, and it keeps each chain's."""
    renames = read_renames(connection)
    for row in connection.stream("SELECT * FROM facts ORDER BY at, writer, seq"):
        yield renames.today(stored(row))


def rebuild_state(connection: Connection) -> None:
    """Replay all facts into emptied state tables, and mark every projection as out of date. In the
    database: the state of a large ledger does not fit into memory. Raises LedgerDamagedError."""
    for table in state_tables():
        connection.run(f"DELETE FROM {table.name}")
    state = SqlState(connection)
    try:
        for fact in facts_in_order(connection):
            apply(state, fact)
    except DuplicateRowError as error:
        raise LedgerDamagedError(
            f"Two facts make one row: {error.message}.",
            hint="Run `harness ledger verify`: it names the facts.",
        ) from error
    _reset_bookkeeping(connection)


def _reset_bookkeeping(connection: Connection) -> None:
    connection.run("DELETE FROM checklist_rows")
    connection.run(
        "INSERT INTO checklist_rows (number, text, dirty) SELECT number, '', 1 FROM experiments"
    )
    connection.run("DELETE FROM projections")
    last = connection.value("SELECT max(position) FROM facts") or 0
    rows = [{"name": name, "changed": last, "written": -1, "note": None} for name in PROJECTIONS]
    connection.insert(projections, rows)
