"""Facts between clones: out to the text form, and in from it."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.domain.disk_errors import disk_error
from harness.errors import LedgerDamagedError, RefusedError, UsageError
from harness.files import set_aside
from harness.ledger.anchors import Anchor, read_anchors, write_anchor
from harness.ledger.chain import StoredFact
from harness.ledger.creation import require_anchored
from harness.ledger.facts import KINDS
from harness.ledger.ledger import Ledger
from harness.ledger.replay import facts_in_order, rebuild_state
from harness.ledger.schema import facts
from harness.ledger.store import Connection
from harness.ledger.text_form import (
    DIFFERS,
    UNREADABLE,
    fact_at,
    read_chain,
    text_files,
    text_problems,
    write_text,
    writers,
)
from harness.ledger.text_parts import SUFFIX


def export_facts(ledger: Ledger, folder: Path, *, check: bool = False) -> list[Path]:
    """Append the new facts to the text form in `folder`; returns the files that changed.

    With `check` every line is compared, and a file that differs is set aside and written anew.
    Raises UsageError (not_writable).
    """
    with _written(folder), ledger.connection() as connection:
        if check:
            wrong = {
                path
                for path, _, fact, what in text_problems(connection, folder)
                if (fact and what == DIFFERS) or what == UNREADABLE
            }
            for path in sorted(wrong):
                set_aside(path, "differs")
        written = [write_text(connection, folder, writer) for writer in writers(connection)]
    return [path for path in written if path is not None]


@contextlib.contextmanager
def _written(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        known = disk_error(error, [folder])
        if known is not None and known.exit_code == 3 and known.code != "path_forbidden":
            raise known from error
        raise UsageError(
            f"The facts cannot be written to {error.filename or folder}: {error.strerror}.",
            hint="Name a folder that you can write to, then run `harness ledger export` again.",
            code="not_writable",
        ) from error


def import_facts(ledger: Ledger, folder: Path) -> int:
    """Take in all facts that the ledger lacks, or none; returns their number.

    Raises LedgerDamagedError naming the fact that is damaged or differs from the ledger's, and
    RefusedError (id_clash) when two writers gave one id to different things.
    """
    with ledger.exclusive() as connection:
        fresh, last = insert_facts(connection, ledger, folder)
        if not fresh:
            return 0
        require_no_clash(facts_in_order(connection))
        # Imported facts belong between our own, and effects depend on the order: replay all.
        rebuild_state(connection)
    anchor_facts(ledger, last)
    return fresh


def insert_facts(
    connection: Connection, ledger: Ledger, folder: Path
) -> tuple[int, list[StoredFact]]:
    """Store what the ledger lacks, without its effect: how many, and the last one of each writer.
    Raises LedgerDamagedError."""
    last: dict[str, StoredFact] = {}
    fresh = 0
    # Fact after fact: a large ledger does not fit into memory.
    for path in text_files(folder):
        for fact in read_chain(folder, path.name.removesuffix(SUFFIX)):
            here = fact_at(connection, fact.writer, fact.seq)
            if here is None:
                connection.insert(facts, [fact.columns()])
                last[fact.writer] = fact
                fresh += 1
            elif here.data != fact.data:
                raise LedgerDamagedError(
                    f"Fact {fact.seq} of writer {fact.writer} ({fact.kind}) in {folder} is not"
                    f" the one in {ledger.place}.",
                    hint="Run `harness ledger verify` to see which of the two was changed.",
                )
    if fresh:
        known = read_anchors(ledger.anchors)
        require_anchored(connection, known, ledger.place, missing_allowed=True)
    return fresh, list(last.values())


def anchor_facts(ledger: Ledger, last: Iterable[StoredFact]) -> None:
    """After the commit."""
    for fact in last:
        write_anchor(ledger.anchors, Anchor(writer=fact.writer, seq=fact.seq, hash=fact.hash))


def require_no_clash(all_facts: Iterable[StoredFact]) -> None:
    owners: dict[tuple[str, ...], tuple[str, int, str]] = {}
    for fact in all_facts:
        names = KINDS[fact.kind].MAKES
        if not names:
            continue
        body = fact.body()
        claim = (fact.kind, *(str(body[name]) for name in names))
        own = (fact.writer, fact.seq, fact.at)
        writer, seq, at = owners.setdefault(claim, own)
        if (writer, seq, at) != own:
            name = "/".join(claim[1:])
            raise RefusedError(
                f"{name} was made twice ({fact.kind}): by writer {writer} (fact {seq},"
                f" {at}) and by writer {fact.writer} (fact {fact.seq}, {fact.at}). Nothing"
                " was imported.",
                hint=(
                    "Two clones worked at the same time: `harness ledger merge` takes the others'"
                    " facts in and renames this clone's own ids."
                ),
                code="id_clash",
            )
