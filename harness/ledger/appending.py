"""Appending facts. One transaction a fact (or a group that belongs together): rules, bytes, state,
stale marks.

A result that the ledger could not take in time is kept in a file and recorded at the next write:
only what has happened anyway and cannot be observed again, e.g. a run's end.
"""

import contextlib
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from harness.clock import Clock, iso, parse_iso
from harness.errors import LedgerDamagedError, LedgerError, UsageError
from harness.files import atomic_write, canonical_json
from harness.ledger.anchors import Anchor, read_anchors, write_anchor
from harness.ledger.chain import FIRST_PREV, StoredFact, seal
from harness.ledger.creation import not_imported, require_anchored
from harness.ledger.facts import KINDS, Fact, apply, fact_from
from harness.ledger.facts.base import LedgerPart
from harness.ledger.schema import facts, spooled
from harness.ledger.state import SqlState
from harness.ledger.text_form import text_files
from harness.ledger.views import mark_stale

_INSERT = facts.insert().returning(facts.c.position)


class Writer:
    """One open write transaction: facts appended through it become visible together or not at
    all."""

    def __init__(self, connection: sa.Connection, *, writer: str, clock: Clock) -> None:
        self.connection = connection
        self.state = SqlState(connection)
        self._writer = writer
        self._clock = clock
        self._head = self._read_head()
        self.appended: list[StoredFact] = []

    def append(self, fact: Fact) -> StoredFact:
        """Raises TransitionError, NotFoundError, RefusedError or UsageError; then nothing of it is
        stored."""
        # A record extends its fact: stored in its place it would have a field too many.
        if KINDS.get(fact.KIND) is not type(fact):
            raise TypeError(f"{type(fact).__name__} is no kind of fact")
        body = fact.body()
        KINDS[fact.KIND].require(self.state, body)
        head = self._head
        sealed = seal(
            writer=self._writer,
            seq=head.seq + 1 if head else 1,
            prev=head.hash if head else FIRST_PREV,
            at=self._time(),
            kind=fact.KIND,
            body=body,
        )
        row = {
            name: getattr(sealed, name)
            for name in ("writer", "seq", "prev", "hash", "kind", "at", "data")
        }
        position = self.connection.execute(_INSERT, row).scalar_one()
        stored = StoredFact(**row, position=position)
        apply(self.state, stored)
        mark_stale(self.connection, stored)
        self._head = stored
        self.appended.append(stored)
        return stored

    def _read_head(self) -> StoredFact | None:
        query = (
            sa.select(facts)
            .where(facts.c.writer == self._writer)
            .order_by(facts.c.seq.desc())
            .limit(1)
        )
        row = self.connection.execute(query).mappings().first()
        return StoredFact(**row) if row is not None else None

    def _time(self) -> str:
        """Now; but never before a fact that is here already, and after every other writer's.

        So sorting by (time, writer, number) puts no fact before one that it may rest on, in any
        clone.
        """
        now = iso(self._clock.now())
        query = sa.select(facts.c.at, facts.c.writer).order_by(facts.c.at.desc()).limit(1)
        last = self.connection.execute(query).first()
        if last is None or now > last.at:
            return now
        foreign = sa.exists().where(facts.c.at == last.at, facts.c.writer != self._writer)
        if self.connection.execute(sa.select(foreign)).scalar():
            return iso(parse_iso(last.at) + timedelta(milliseconds=1))
        return str(last.at)


class LedgerWrites(LedgerPart):
    """The writing half of `Ledger`."""

    _clock: Clock
    _active: threading.local
    _restoring: bool
    _text: Path | None
    anchors: Path
    writer: str

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Writer]:
        """Append several facts as one step; nests. What was spooled comes first, the anchor after
        the commit."""
        active: Writer | None = getattr(self._active, "writer", None)
        if active is not None:
            yield active
            return
        with self._database.write() as connection:
            if self._restoring:
                require_anchored(connection, read_anchors(self.anchors), self._database.path)
            self.require_imported()
            writer = Writer(connection, writer=self.writer, clock=self._clock)
            self._active.writer = writer
            try:
                # In the same transaction: what was kept earlier comes before what is appended now.
                drained = _drain(self._spool, connection, writer.append)
                yield writer
            finally:
                self._active.writer = None
        # Only after the commit: a process that is killed before it leaves the files, and the table
        # `spooled` keeps them from being recorded twice.
        for path in drained:
            path.unlink(missing_ok=True)
        if writer.appended:
            last = writer.appended[-1]
            write_anchor(self.anchors, Anchor(writer=last.writer, seq=last.seq, hash=last.hash))

    def facts_wait(self) -> bool:
        """Whether the ledger is empty and the project brings facts as text: a clone, before they
        are imported."""
        if self._text is None:
            return False
        with self._database.read() as connection:
            empty = connection.execute(sa.select(facts.c.position).limit(1)).first() is None
        return empty and bool(text_files(self._text))

    def require_imported(self) -> None:
        """Raises NotFoundError (facts_not_imported) while facts wait: a fact of our own would take
        one of their ids."""
        if self._text is not None and self.facts_wait():
            raise not_imported(self._text)

    def append(self, fact: Fact) -> StoredFact:
        """Store one fact and its effect.

        Raises what `Writer.append` does, and LedgerError; a result that could not be stored because
        the ledger was busy or its disk full is kept in a file beside it and recorded at the next
        write.
        """
        try:
            with self.transaction() as writer:
                return writer.append(fact)
        except LedgerDamagedError:
            raise
        except LedgerError as error:
            raise _keep(self._spool, fact, iso(self._clock.now()), error) from error

    @property
    def _spool(self) -> Path:
        return self._database.path.with_name("spool")


def _keep(folder: Path, fact: Fact, at: str, error: LedgerError) -> LedgerError:
    """Write `fact` to a file; the error to raise says where. `error` itself when the fact is not of
    a kind to keep or the file cannot be written either."""
    if not fact.SPOOLED:
        return error
    path = folder / f"{at.replace(':', '')}-{secrets.token_hex(4)}.json"
    with contextlib.suppress(OSError):
        atomic_write(path, canonical_json({"kind": fact.KIND, "body": fact.body()}) + b"\n")
        return type(error)(
            f"{error.message} The fact ({fact.KIND}) was kept in {path}.",
            hint="It is recorded at the next write to the ledger; nothing is lost.",
            code=error.code,
        )
    return error


def _drain(folder: Path, connection: sa.Connection, append: Callable[[Fact], Any]) -> list[Path]:
    """Append what was kept, oldest first, inside the open transaction; the files to remove after
    its commit.

    A file that is no fact, or one that the rules refuse by now, is renamed to `*.refused`, never
    dropped.
    """
    if not folder.is_dir():
        return []
    done: list[Path] = []
    for path in sorted(folder.glob("*.json")):
        if (
            connection.execute(sa.select(spooled).where(spooled.c.name == path.name)).first()
            is None
        ):
            try:
                value = json.loads(path.read_bytes())
                with connection.begin_nested():
                    append(fact_from(value["kind"], value["body"]))
            except FileNotFoundError:
                continue  # another process drained it
            except (ValueError, KeyError, TypeError, UsageError, LedgerError):
                path.rename(path.with_suffix(".refused"))
                continue
            connection.execute(spooled.insert(), {"name": path.name})
        done.append(path)
    return done
