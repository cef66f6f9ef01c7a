"""Where a fact's effect goes: the state tables of the database, or the same tables in memory for a
replay."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import sqlalchemy as sa

from harness.ledger.schema import STATE, primary_key

Row = dict[str, Any]
Key = tuple[Any, ...]

_TABLES = {table.name: table for table in STATE}
_KEYS = {table.name: primary_key(table) for table in STATE}
_COLUMNS = {table.name: tuple(column.name for column in table.columns) for table in STATE}


class State(Protocol):
    def get(self, table: str, *key: Any) -> Row | None:
        """A copy of the row with this primary key, or None. Values inside it must not be changed in
        place."""
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
        found = (
            self._connection.execute(_SELECT[table], _key_parameters(table, key)).mappings().first()
        )
        return dict(found) if found is not None else None

    def insert(self, table: str, row: Mapping[str, Any]) -> None:
        self._connection.execute(_TABLES[table].insert(), _complete(table, row))

    def update(self, table: str, key: Key, changes: Mapping[str, Any]) -> None:
        statement = _where_key(_TABLES[table].update(), table).values(dict(changes))
        self._connection.execute(statement, _key_parameters(table, key))


class MemoryState:
    """The same tables as dictionaries."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Key, Row]] = {name: {} for name in _TABLES}

    def get(self, table: str, *key: Any) -> Row | None:
        row = self.tables[table].get(key)
        return dict(row) if row is not None else None

    def insert(self, table: str, row: Mapping[str, Any]) -> None:
        whole = _complete(table, row)
        self.tables[table][tuple(whole[name] for name in _KEYS[table])] = whole

    def update(self, table: str, key: Key, changes: Mapping[str, Any]) -> None:
        self.tables[table][key].update(changes)

    def store(self, connection: sa.Connection) -> None:
        """Replace all rows of the state tables by these."""
        for name, table in _TABLES.items():
            connection.execute(table.delete())
            rows = list(self.tables[name].values())
            for start in range(0, len(rows), 1000):
                connection.execute(table.insert(), rows[start : start + 1000])


def read_state(connection: sa.Connection) -> dict[str, dict[Key, Row]]:
    """All rows of the state tables, in the form of `MemoryState.tables`."""
    tables: dict[str, dict[Key, Row]] = {}
    for name, table in _TABLES.items():
        rows: Iterable[Any] = connection.execute(sa.select(table)).mappings()
        tables[name] = {tuple(row[column] for column in _KEYS[name]): dict(row) for row in rows}
    return tables


def _complete(table: str, row: Mapping[str, Any]) -> Row:
    if unknown := set(row) - set(_COLUMNS[table]):
        raise KeyError(f"{table} has no columns {sorted(unknown)}")
    return {name: row.get(name) for name in _COLUMNS[table]}


def _where_key(statement: Any, table: str) -> Any:
    for name in _KEYS[table]:
        statement = statement.where(_TABLES[table].c[name] == sa.bindparam(f"key_{name}"))
    return statement


def _key_parameters(table: str, key: Key) -> dict[str, Any]:
    return {f"key_{name}": value for name, value in zip(_KEYS[table], key, strict=True)}


_SELECT = {name: _where_key(sa.select(table), name) for name, table in _TABLES.items()}
