"""Where a fact's effect goes: the state tables of the database, or of a replay in memory."""

from collections.abc import Mapping
from typing import Any, Protocol

from harness.ledger.schema import KEPT, TABLES, Table
from harness.ledger.schema import Row as Row
from harness.ledger.store import Connection

Key = tuple[Any, ...]


class State(Protocol):
    def get(self, table: str, *key: Any) -> Row | None:
        """A shallow copy of the row with this primary key, or None."""
        ...

    def insert(self, table: str, row: Mapping[str, Any]) -> None:
        """Add a row; columns that are left out are null."""
        ...

    def update(self, table: str, key: Key, changes: Mapping[str, Any]) -> None: ...


class SqlState:
    """The state tables of the database, inside the transaction of `connection`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, table: str, *key: Any) -> Row | None:
        of = TABLES[table]
        return self._connection.row(of.select, **_key_values(of, key))

    def insert(self, table: str, row: Mapping[str, Any]) -> None:
        of = TABLES[table]
        self._connection.insert(of, [_complete(of, row)])

    def update(self, table: str, key: Key, changes: Mapping[str, Any]) -> None:
        of = TABLES[table]
        values = of.encoded(changes) | _key_values(of, key)
        self._connection.run(of.update(*changes), **values)


def state_tables() -> list[Table]:
    return [table for table in TABLES.values() if table not in KEPT]


def _complete(table: Table, row: Mapping[str, Any]) -> Row:
    if unknown := set(row) - set(table.columns):
        raise KeyError(f"{table.name} has no columns {sorted(unknown)}")
    return {name: row.get(name) for name in table.columns}


def _key_values(table: Table, key: Key) -> Row:
    names = (f"key_{name}" for name in table.key)
    return dict(zip(names, key, strict=True))
