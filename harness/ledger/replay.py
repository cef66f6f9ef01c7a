"""Replaying facts: the state tables made again from nothing, in memory or in the database."""

import functools
from collections.abc import Iterable, Iterator

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from harness.errors import LedgerDamagedError
from harness.ledger.apply import apply
from harness.ledger.chain import StoredFact
from harness.ledger.schema import (
    PROJECTIONS,
    STATE,
    checklist_rows,
    experiments,
    facts,
    projections,
)
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
    """All facts by (time, writer, number): an order that every clone agrees on and that keeps each
    chain's."""
    query = sa.select(facts).order_by(facts.c.at, facts.c.writer, facts.c.seq)
    for row in connection.execute(query).mappings():
        yield stored(row)


def replay(all_facts: Iterable[StoredFact]) -> MemoryState:
    """The state that the facts add up to. Raises LedgerDamagedError when one refers to what no
    other made."""
    state = MemoryState()
    for fact in all_facts:
        apply(state, fact)
    return state


def rebuild_state(connection: sa.Connection) -> None:
    """Empty the state tables, replay all facts into them, and mark every projection as out of
    date."""
    replay(facts_in_order(connection)).store(connection)
    reset_bookkeeping(connection)


def recreate_state(connection: sa.Connection) -> None:
    """Make the state tables as the schema says now, replay all facts into them; for migrations that
    change their form.

    A table that has this form already stays: a new file takes every migration, and the first made
    it so.
    """
    found = connection.exec_driver_sql(
        "SELECT tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"
    ).all()
    for table in STATE:
        existing = {str(text) for name, text in found if name == table.name}
        if existing == _form(table):
            continue
        if existing:
            table.drop(connection)
        table.create(connection)
    rebuild_state(connection)


@functools.cache
def _form(table: sa.Table) -> frozenset[str]:
    """What SQLite keeps of the statements that make a table and its indexes."""
    dialect = sqlite.dialect()
    made = str(CreateTable(table).compile(dialect=dialect))
    indexes = [str(CreateIndex(index).compile(dialect=dialect)) for index in table.indexes]
    return frozenset(text.strip() for text in (made, *indexes))


def reset_bookkeeping(connection: sa.Connection) -> None:
    connection.execute(checklist_rows.delete())
    numbers = sa.select(experiments.c.number, sa.literal(""), sa.literal(1))
    connection.execute(checklist_rows.insert().from_select(["number", "text", "dirty"], numbers))
    connection.execute(projections.delete())
    last = connection.execute(sa.select(sa.func.max(facts.c.position))).scalar() or 0
    rows = [{"name": name, "changed": last, "written": -1, "note": None} for name in PROJECTIONS]
    connection.execute(projections.insert(), rows)
