"""The ledger's tables that are not replayed: `facts` is the truth, the others are book-keeping.

All other tables of `metadata` are state: what the facts add up to. The families of facts define
them; they can be dropped and replayed at any time.
"""

from typing import Any

import sqlalchemy as sa

APPLICATION_ID = 0x48524E53  # "HRNS" in SQLite's header: tells a ledger from any other database

metadata = sa.MetaData()

JSON = sa.JSON(none_as_null=True)


def required(kind: Any, *names: str) -> list[sa.Column[Any]]:
    """NOT NULL columns of one type."""
    return [sa.Column(name, kind, nullable=False) for name in names]


def log_columns(*, key: bool = False) -> list[sa.Column[Any]]:
    """Which fact made the row. (at, writer, seq) orders all facts alike in every clone; `key` makes
    (writer, seq) the primary key."""
    return [
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("writer", sa.Text, nullable=False, primary_key=key),
        sa.Column("seq", sa.Integer, nullable=False, primary_key=key),
    ]


meta = sa.Table(
    "meta",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

facts = sa.Table(
    "facts",
    metadata,
    # The order of arrival in this database: facts of other clones come late, so it is no order of
    # time and differs from clone to clone.
    sa.Column("position", sa.Integer, primary_key=True),
    *required(sa.Text, "writer"),
    *required(sa.Integer, "seq"),
    *required(sa.Text, "prev", "hash", "kind", "at"),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.UniqueConstraint("writer", "seq"),
    sa.Index("facts_at", "at"),
)

projections = sa.Table(
    "projections",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("changed", sa.Integer, nullable=False),  # position of the last fact that it shows
    sa.Column("written", sa.Integer, nullable=False),  # position up to which the file was written
    sa.Column("note", JSON),  # what the writer of the file wants to know next time, e.g. its size
)

checklist_rows = sa.Table(
    "checklist_rows",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("dirty", sa.Integer, nullable=False),
    sa.Index("checklist_rows_dirty", "dirty"),
)

spooled = sa.Table("spooled", metadata, sa.Column("name", sa.Text, primary_key=True))

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
