"""Replaying facts: the state tables made again from nothing."""

from collections.abc import Iterable, Iterator

from harness.errors import LedgerDamagedError
from harness.ledger.chain import StoredFact
from harness.ledger.database import Connection
from harness.ledger.facts import apply
from harness.ledger.schema import PROJECTIONS, Row, projections
from harness.ledger.state import MemoryState


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
    for row in connection.rows("SELECT * FROM facts ORDER BY at, writer, seq"):
        yield stored(row)


def replay(all_facts: Iterable[StoredFact]) -> MemoryState:
    """The state that the facts add up to. Raises LedgerDamagedError."""
    state = MemoryState()
    for fact in all_facts:
        apply(state, fact)
    return state


def rebuild_state(connection: Connection) -> None:
    """Replay all facts into emptied state tables, and mark every projection as out of date."""
    replay(facts_in_order(connection)).store(connection)
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
