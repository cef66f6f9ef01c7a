"""Chain anchors: the last fact of each writer, kept beside the database, so that a cut tail is
noticed.

`<anchors>/<writer>.json` holds {seq, hash}. It is written after the commit, so after a crash it may
be behind the ledger; the ledger must always contain the fact that it names.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from harness.errors import LedgerDamagedError
from harness.files import atomic_write, canonical_json, lock


@dataclass(frozen=True, kw_only=True)
class Anchor:
    writer: str
    seq: int
    hash: str


def read_anchor(folder: Path, writer: str) -> Anchor | None:
    """None when there is none. Raises LedgerDamagedError when the file cannot be read as one."""
    path = folder / f"{writer}.json"
    try:
        value = json.loads(path.read_bytes())
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
    """All of them. Read them BEFORE the transaction that they are compared with: another process
    may append and move its anchor at any time, and an anchor must not be newer than what the
    transaction sees."""
    return [
        found
        for writer in anchored_writers(folder)
        if (found := read_anchor(folder, writer)) is not None
    ]


def write_anchor(folder: Path, anchor: Anchor) -> None:
    """Move the writer's anchor forward; never back, so that appending to a cut ledger does not hide
    the cut.

    Processes that committed one after the other may come here in any order: compare and write are
    one step.
    """
    with lock(folder / ".lock"):
        before = read_anchor(folder, anchor.writer)
        if before is None or before.seq < anchor.seq:
            data = canonical_json({"seq": anchor.seq, "hash": anchor.hash}) + b"\n"
            atomic_write(folder / f"{anchor.writer}.json", data, durable=before is None)
