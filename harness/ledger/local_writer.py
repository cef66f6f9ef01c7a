"""Whose chain a ledger extends: its table `meta` says so, and `<anchors>/local_writer` says it once
more.

A changed name in `meta` would make the ledger take its own chain for another clone's and begin a
new one.
"""

from pathlib import Path

import sqlalchemy as sa

from harness.errors import LedgerDamagedError
from harness.files import atomic_write
from harness.ledger.failures import translated
from harness.ledger.schema import meta

_NAME = "local_writer"
_KEY = "writer"


def note_local_writer(anchors: Path, writer: str) -> None:
    """Note `writer` unless one is noted. Raises the LedgerError that says why it cannot be
    written."""
    with translated(anchors / _NAME):
        if not (anchors / _NAME).is_file():
            atomic_write(anchors / _NAME, f"{writer}\n")


def forget_local_writer(anchors: Path) -> None:
    """For a ledger that is made anew; the first opening of it notes its writer."""
    with translated(anchors / _NAME):
        (anchors / _NAME).unlink(missing_ok=True)


def local_writer(connection: sa.Connection, anchors: Path, path: Path) -> str:
    """The writer of the ledger at `path`. Raises LedgerDamagedError when `meta` does not say it, or
    not as noted."""
    problems = meta_problems(connection, anchors)
    if problems:
        raise LedgerDamagedError(
            f"{path} was changed: {problems[0]}", hint="Run `harness ledger verify`."
        )
    return _rows(connection)[_KEY]


def meta_problems(connection: sa.Connection, anchors: Path) -> list[str]:
    """What is wrong with the table `meta`, each with its hint. Without a note only its form can be
    judged."""
    rows, note = _rows(connection), anchors / _NAME
    strange = sorted(set(rows) - {_KEY}, key=str)
    problems = [
        f"the table meta has a row {key!r} that no harness of this version writes: remove it."
        for key in strange
    ]
    writer = rows.get(_KEY)
    noted = note.read_text("utf-8", "replace").strip() if note.is_file() else None
    if type(writer) is not str:
        said = f": {note} says {noted}" if noted else ""
        problems.append(
            f"the table meta does not name the writer whose chain this ledger extends{said}."
            f" {_HINT}"
        )
    elif noted is not None and noted != writer:
        problems.append(
            f"the table meta says that this ledger extends the chain of writer {writer}, {note}"
            f" says {noted}. {_HINT} If it is the note that was changed, remove it: it is written"
            " again."
        )
    return problems


_HINT = (
    "Restore the file from a backup, or move it away and run `harness ledger import` to read the"
    " text form."
)


def _rows(connection: sa.Connection) -> dict[str, str]:
    if not sa.inspect(connection).has_table(meta.name):
        return {}
    return {row.key: row.value for row in connection.execute(sa.select(meta))}
