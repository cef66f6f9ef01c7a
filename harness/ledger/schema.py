"""The ledger's tables that are not replayed: `facts` is the truth, the others are book-keeping.

All other tables are state: what the facts add up to. The families of facts define them; they can
be dropped and replayed at any time.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from harness.files import canonical_json

APPLICATION_ID = 0x48524E53  # "HRNS" in SQLite's header: tells a ledger from any other database

TEXT, INTEGER, FLOAT = "TEXT", "INTEGER", "FLOAT"
BLOB, BOOLEAN, JSON = "BLOB", "BOOLEAN", "JSON"
"""Kinds of columns. JSON and BOOLEAN are read back as the values that were written."""

Row = dict[str, Any]


class Column(NamedTuple):
    name: str
    kind: str
    required: bool = True
    key: bool = False

    def words(self, kinds: Mapping[str, str]) -> str:
        end = " NOT NULL" if self.required else ""
        return f"{self.name} {kinds.get(self.kind, self.kind)}{end}"


class Index(NamedTuple):
    name: str
    columns: tuple[str, ...]


class Unique(NamedTuple):
    columns: tuple[str, ...]


def keys(kind: str, *names: str) -> list[Column]:
    """Columns of the primary key."""
    return [Column(name, kind, key=True) for name in names]


def required(kind: str, *names: str) -> list[Column]:
    """NOT NULL columns of one kind."""
    return [Column(name, kind) for name in names]


def optional(kind: str, *names: str) -> list[Column]:
    return [Column(name, kind, required=False) for name in names]


def index(name: str, *columns: str) -> Index:
    return Index(name, columns)


def log_columns(*, key: bool = False) -> list[Column]:
    """Which fact made the row. (at, writer, seq) orders all facts alike in every clone; `key` makes
    (writer, seq) the primary key."""
    return [
        Column("at", TEXT),
        Column("writer", TEXT, key=key),
        Column("seq", INTEGER, key=key),
    ]


class Table:
    """One table, in SQL that SQLite and PostgreSQL understand; `:name` stands for a value."""

    def __init__(
        self,
        name: str,
        *parts: Column | Index | Unique,
    ) -> None:
        self.name = name
        self._parts = parts
        columns = [one for one in parts if isinstance(one, Column)]
        self.columns = {one.name: one for one in columns}
        self.key = tuple(one.name for one in columns if one.key)
        TABLES[name] = self

    def ddl(self, kinds: Mapping[str, str]) -> list[str]:
        """What makes the table and its indexes; `kinds`: how the database calls ours, where it is
        not by their names."""
        lines = [one.words(kinds) for one in self.columns.values()]
        lines.append(f"PRIMARY KEY ({', '.join(self.key)})")
        lines += [
            f"UNIQUE ({', '.join(one.columns)})" for one in self._parts if isinstance(one, Unique)
        ]
        indexes = [
            f"CREATE INDEX IF NOT EXISTS {one.name} ON {self.name} ({', '.join(one.columns)})"
            for one in self._parts
            if isinstance(one, Index)
        ]
        start = f"CREATE TABLE IF NOT EXISTS {self.name}"
        return [f"{start} ({', '.join(lines)})", *indexes]

    def insert(self, names: Iterable[str]) -> str:
        """Needs a value for each of `names`."""
        values = ", ".join(f":{name}" for name in names)
        into = f"INSERT INTO {self.name} ({', '.join(names)})"
        return f"{into} VALUES ({values})"

    def update(self, *names: str) -> str:
        """Sets `names` in the row with a key; the key's values are called key_NAME."""
        changes = ", ".join(f"{name} = :{name}" for name in names)
        return f"UPDATE {self.name} SET {changes} WHERE {self._of_key}"

    @cached_property
    def select(self) -> str:
        """The row with a key; the key's values are called key_NAME."""
        return f"SELECT * FROM {self.name} WHERE {self._of_key}"

    @cached_property
    def _of_key(self) -> str:
        return " AND ".join(f"{name} = :key_{name}" for name in self.key)

    def encoded(self, row: Mapping[str, Any]) -> Row:
        """As the database keeps it: what is in a JSON column as text."""
        return {
            name: to_json(value)
            if value is not None and self.columns[name].kind == JSON
            else value
            for name, value in row.items()
        }


TABLES: dict[str, Table] = {}
"""All tables by name."""


def to_json(value: Any) -> str:
    return canonical_json(value).decode("utf-8")


meta = Table("meta", *keys(TEXT, "key"), *required(TEXT, "value"))

facts = Table(
    "facts",
    # The order of arrival in this database: facts of other clones come late, so it is no order of
    # time and differs from clone to clone.
    *keys(INTEGER, "position"),
    *required(TEXT, "writer"),
    *required(INTEGER, "seq"),
    *required(TEXT, "prev", "hash", "kind", "at"),
    *required(BLOB, "data"),
    Unique(("writer", "seq")),
    index("facts_at", "at"),
)

projections = Table(
    "projections",
    *keys(TEXT, "name"),
    *required(INTEGER, "changed"),  # position of the last fact that it shows
    *required(INTEGER, "written"),  # position up to which the file was written
    *optional(JSON, "note"),  # what the file's writer wants to know next time, e.g. its size
)

checklist_rows = Table(
    "checklist_rows",
    *keys(INTEGER, "number"),
    *required(TEXT, "text"),
    *required(INTEGER, "dirty"),
    index("checklist_rows_dirty", "dirty"),
)

spooled = Table("spooled", *keys(TEXT, "name"))

PROJECTIONS: tuple[str, ...] = (
    "checklist",
    "decision_log",
    "state",
    "briefing",
    "hand_offs",
    "priors",
    "facts",
)

KEPT = (meta, facts, projections, checklist_rows, spooled)
"""Every table that is not state."""
