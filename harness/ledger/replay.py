"""Replaying facts: the state tables made again from nothing."""

from collections.abc import Iterable, Iterator

import sqlalchemy as sa

from harness.errors import LedgerDamagedError
from harness.ledger.chain import StoredFact
from harness.ledger.facts import apply
from harness.ledger.facts.experiment import experiments
from harness.ledger.schema import PROJECTIONS, checklist_rows, facts, projections
from harness.ledger.state import MemoryState


def stored(row: sa.RowMapping) -> StoredFact:
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


def facts_in_order(connection: sa.Connection) -> Iterator[StoredFact]:
    """By (time, writer, number): every clone agrees on this order, and it keeps each chain's."""
    query = sa.select(facts).order_by(facts.c.at, facts.c.writer, facts.c.seq)
    for row in connection.execute(query).mappings():
        yield stored(row)


def replay(all_facts: Iterable[StoredFact]) -> MemoryState:
    """The state that the facts add up to. Raises LedgerDamagedError."""
    state = MemoryState()
    for fact in all_facts:
        apply(state, fact)
    return state


def rebuild_state(connection: sa.Connection) -> None:
    """Replay all facts into emptied state tables, and mark every projection as out of date."""
    replay(facts_in_order(connection)).store(connection)
    _reset_bookkeeping(connection)


def _reset_bookkeeping(connection: sa.Connection) -> None:
    connection.execute(checklist_rows.delete())
    numbers = sa.select(experiments.c.number, sa.literal(""), sa.literal(1))
    connection.execute(checklist_rows.insert().from_select(["number", "text", "dirty"], numbers))
    connection.execute(projections.delete())
    last = connection.execute(sa.select(sa.func.max(facts.c.position))).scalar() or 0
    rows = [{"name": name, "changed": last, "written": -1, "note": None} for name in PROJECTIONS]
    connection.execute(projections.insert(), rows)
