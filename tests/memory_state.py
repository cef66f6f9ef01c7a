"""The state tables as dictionaries: what the database must come to, made in another way."""

from collections.abc import Iterable, Mapping
from typing import Any

from harness.ledger.chain import StoredFact
from harness.ledger.facts import apply
from harness.ledger.schema import TABLES, Row
from harness.ledger.state import Key, _complete, state_tables


class MemoryState:
    """The same tables as dictionaries."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Key, Row]] = {table.name: {} for table in state_tables()}

    def get(self, table: str, *key: Any) -> Row | None:
        row = self.tables[table].get(key)
        return dict(row) if row is not None else None

    def insert(self, table: str, row: Mapping[str, Any]) -> None:
        of = TABLES[table]
        whole = _complete(of, row)
        self.tables[table][tuple(whole[name] for name in of.key)] = whole

    def update(self, table: str, key: Key, changes: Mapping[str, Any]) -> None:
        self.tables[table][key].update(changes)


def replay(all_facts: Iterable[StoredFact]) -> MemoryState:
    """The state that the facts add up to. Raises LedgerDamagedError."""
    state = MemoryState()
    for fact in all_facts:
        apply(state, fact)
    return state
