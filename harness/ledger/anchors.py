"""Notes outside the database that reveal a cut or replaced ledger: each writer's last fact, and
whose chain the ledger extends.

`<anchors>/<writer>.json` holds {seq, hash}. It is written after the commit, so after a crash it may
be behind the ledger; the ledger must always contain the fact that it names.

`<anchors>/local_writer` repeats the table `meta`: a changed name there would make the ledger take
its own chain for another clone's and begin a new one.
"""

import json
from pathlib import Path

from harness.domain.late import Late, dataclass
from harness.domain.team_ledger import Place
from harness.errors import LedgerDamagedError
from harness.files import atomic_write, canonical_json, lock, open_file
from harness.ledger.failures import translated
from harness.ledger.schema import meta
from harness.ledger.store import Connection

_NAME = "local_writer"
_KEY = "writer"
_HINT = (
    "Restore the file from a backup, or move it away and run `harness ledger import` to read the"
    " text form."
)


@dataclass(frozen=True, kw_only=True)
class Anchor(Late):
    writer: str
    seq: int
    hash: str


def read_anchor(folder: Path, writer: str) -> Anchor | None:
    """None when there is no file. Raises LedgerDamagedError when it holds no anchor."""
    path = folder / f"{writer}.json"
    try:
        with open_file(path) as stream:
            value = json.loads(stream.read())
        return Anchor(writer=writer, seq=int(value["seq"]), hash=str(value["hash"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LedgerDamagedError(
            f"The chain anchor {path} cannot be read: {error!r}.",
            hint=(
                "Run `harness ledger verify`; if the ledger is whole, remove the anchor: it is"
                " written again."
            ),
        ) from error


def anchored_writers(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    return sorted(
        path.name.removesuffix(".json")
        for path in folder.glob("*.json")
        if not path.name.startswith(".")
    )


def read_anchors(folder: Path) -> list[Anchor]:
    """Read them BEFORE the transaction that they are compared with: another process may append
    meanwhile, and an anchor newer than what the transaction sees would look like a cut."""
    return [
        anchor
        for writer in anchored_writers(folder)
        if (anchor := read_anchor(folder, writer)) is not None
    ]


def write_anchor(folder: Path, anchor: Anchor) -> None:
    """Move the writer's anchor forward; never back: appending to a cut ledger must not hide the
    cut."""
    # Locked: processes that committed one after the other may come here in any order.
    with lock(folder / ".lock"):
        before = read_anchor(folder, anchor.writer)
        if before is None or before.seq < anchor.seq:
            data = canonical_json({"seq": anchor.seq, "hash": anchor.hash}) + b"\n"
            # Only the first is synced. A later one that a power cut takes back still names a fact
            # of the ledger; none at all would let a whole chain vanish unnoticed.
            atomic_write(folder / f"{anchor.writer}.json", data, durable=before is None)


def note_local_writer(anchors: Path, writer: str) -> None:
    """Note `writer` unless one is noted. Raises LedgerError."""
    with translated(anchors / _NAME):
        if not (anchors / _NAME).is_file():
            atomic_write(anchors / _NAME, f"{writer}\n")


def forget_local_writer(anchors: Path) -> None:
    """For a ledger that is made anew: its first opening notes the new writer."""
    with translated(anchors / _NAME):
        (anchors / _NAME).unlink(missing_ok=True)


def local_writer(connection: Connection, anchors: Path, place: Place) -> str:
    """Raises LedgerDamagedError when `meta` names no writer, or another than was noted."""
    problems = meta_problems(connection, anchors)
    if problems:
        raise LedgerDamagedError(
            f"{place} was changed: {problems[0]}", hint="Run `harness ledger verify`."
        )
    return _meta(connection)[_KEY]


def meta_problems(connection: Connection, anchors: Path) -> list[str]:
    """What is wrong with the table `meta`, each with its hint."""
    rows, note = _meta(connection), anchors / _NAME
    strange = sorted(set(rows) - {_KEY}, key=str)
    problems = [
        f"the table meta has a row {key!r} that no harness of this version writes: remove it."
        for key in strange
    ]
    writer = rows.get(_KEY)
    noted = note.read_text("utf-8", "replace").strip() if note.is_file() else None
    if type(writer) is not str:
        suffix = f": {note} says {noted}" if noted else ""
        problems.append(
            f"the table meta does not name the writer whose chain this ledger extends{suffix}."
            f" {_HINT}"
        )
    elif noted is not None and noted != writer:
        problems.append(
            f"the table meta says that this ledger extends the chain of writer {writer}, {note}"
            f" says {noted}. {_HINT} If it is the note that was changed, remove it: it is written"
            " again."
        )
    return problems


def _meta(connection: Connection) -> dict[str, str]:
    if meta.name not in connection.tables():
        return {}
    rows = connection.rows("SELECT key, value FROM meta")
    return {row["key"]: row["value"] for row in rows}
