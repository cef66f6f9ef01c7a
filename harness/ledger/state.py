"""Where a fact's effect goes: the state tables of the database, or of a replay in memory."""

import functools
from collections.abc import Mapping
from typing import Any, Protocol

import sqlalchemy as sa

from harness.ledger.schema import KEPT, metadata

Row = dict[str, Any]
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

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def get(self, table: str, *key: Any) -> Row | None:
        result = self._connection.execute(_select(table), _key_parameters(table, key))
        row = result.mappings().first()
        return dict(row) if row is not None else None

    def insert(self, table: str, row: Mapping[str, Any]) -> None:
        self._connection.execute(metadata.tables[table].insert(), _complete(table, row))

    def update(self, table: str, key: Key, changes: Mapping[str, Any]) -> None:
        statement = _where_key(metadata.tables[table].update(), table).values(dict(changes))
        self._connection.execute(statement, _key_parameters(table, key))


class MemoryState:
    """The same tables as dictionaries."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Key, Row]] = {table.name: {} for table in state_tables()}

    def get(self, table: str, *key: Any) -> Row | None:
        row = self.tables[table].get(key)
        return dict(row) if row is not None else None

    def insert(self, table: str, row: Mapping[str, Any]) -> None:
        whole = _complete(table, row)
        self.tables[table][tuple(whole[name] for name in _key(table))] = whole

    def update(self, table: str, key: Key, changes: Mapping[str, Any]) -> None:
        self.tables[table][key].update(changes)

    def store(self, connection: sa.Connection) -> None:
        """Replace all rows of the state tables by these."""
        for table in state_tables():
            connection.execute(table.delete())
            rows = list(self.tables[table.name].values())
            # In blocks: SQLAlchemy builds all parameters of one statement in memory.
            for start in range(0, len(rows), 1000):
                connection.execute(table.insert(), rows[start : start + 1000])


def state_tables() -> list[sa.Table]:
    return [table for table in metadata.tables.values() if table not in KEPT]


def read_state(connection: sa.Connection) -> dict[str, dict[Key, Row]]:
    """All rows of the state tables, in the form of `MemoryState.tables`."""
    return {
        table.name: {
            tuple(row[name] for name in _key(table.name)): dict(row)
            for row in connection.execute(sa.select(table)).mappings()
        }
        for table in state_tables()
    }


@functools.cache
def _key(table: str) -> tuple[str, ...]:
    """The names of the table's key columns, in order."""
    return tuple(column.name for column in metadata.tables[table].primary_key.columns)


def _complete(table: str, row: Mapping[str, Any]) -> Row:
    columns = metadata.tables[table].columns.keys()
    if unknown := set(row) - set(columns):
        raise KeyError(f"{table} has no columns {sorted(unknown)}")
    return {name: row.get(name) for name in columns}


def _where_key(statement: Any, table: str) -> Any:
    for name in _key(table):
        column = metadata.tables[table].c[name]
        statement = statement.where(column == sa.bindparam(f"key_{name}"))
    return statement


def _key_parameters(table: str, key: Key) -> dict[str, Any]:
    return {f"key_{name}": value for name, value in zip(_key(table), key, strict=True)}


@functools.cache
def _select(table: str) -> Any:
    return _where_key(sa.select(metadata.tables[table]), table)
