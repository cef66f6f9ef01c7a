"""Appending facts: rules, bytes, state and stale marks in one transaction.

A fact that cannot be observed again, e.g. a run's end, is kept in a file (spooled) when the ledger
is busy or its disk full, and recorded at the next write.
"""

import contextlib
import copy
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from harness.clock import Clock, iso, parse_iso
from harness.domain.plain_text import plain_value
from harness.errors import LedgerDamagedError, LedgerError, RefusedError, UsageError
from harness.files import atomic_write, canonical_json
from harness.ledger.anchors import Anchor, read_anchors, write_anchor
from harness.ledger.chain import FIRST_PREV, StoredFact, seal
from harness.ledger.creation import not_imported, require_anchored
from harness.ledger.facts import KINDS, Fact, apply, fact_from
from harness.ledger.facts.base import LedgerPart
from harness.ledger.schema import facts, spooled
from harness.ledger.state import SqlState
from harness.ledger.state_version import require_not_moved
from harness.ledger.store import CommitUnknownError, Connection
from harness.ledger.text_form import fact_at, text_files
from harness.ledger.views import mark_stale

_SPOOLED = "SELECT name FROM spooled WHERE name = :name"


class Writer:
    """One open write transaction."""

    def __init__(
        self,
        connection: Connection,
        *,
        writer: str,
        clock: Clock,
        origin: str | None = None,
        said: str | None = None,
    ) -> None:
        self.connection = connection
        self.state = SqlState(connection)
        self._writer = writer
        self._clock = clock
        self._head = self._read_head()
        self._origin = origin
        # Of the hash of a fact behind which nobody else has written: it is known who goes on.
        self._known = self._head is not None and self._head.hash == said
        self.appended: list[StoredFact] = []

    def append(self, fact: Fact) -> StoredFact:
        """Raises TransitionError, NotFoundError, RefusedError or UsageError, and stores nothing."""
        # A record extends its fact: stored in its place it would have a field too many.
        if KINDS.get(fact.KIND) is not type(fact):
            raise TypeError(f"{type(fact).__name__} is no kind of fact")
        body = _entered(fact)
        KINDS[fact.KIND].require(self.state, body)
        head = self._head
        sealed = seal(
            writer=self._writer,
            seq=head.seq + 1 if head else 1,
            prev=head.hash if head else FIRST_PREV,
            at=self._time(),
            kind=fact.KIND,
            body=body,
            origin=None if self._known else self._origin,
        )
        columns = sealed.columns()
        insert = f"{facts.insert(columns)} RETURNING position"
        position = self.connection.value(insert, **columns)
        stored = replace(sealed, position=position)
        apply(self.state, stored)
        mark_stale(self.connection, stored)
        self._head, self._known = stored, True
        self.appended.append(stored)
        return stored

    def _read_head(self) -> StoredFact | None:
        query = "SELECT * FROM facts WHERE writer = :writer ORDER BY seq DESC LIMIT 1"
        row = self.connection.row(query, writer=self._writer)
        return StoredFact(**row) if row is not None else None

    def _time(self) -> str:
        """Now, but not before any stored fact, and after every other writer's."""
        # Clones replay by (time, writer, number). A clock that went back, or another machine's
        # that is ahead, must not sort a fact before one that it rests on. Among equal times the
        # writer's name decides, so after another writer's fact the time has to move on.
        now = iso(self._clock.now())
        last = self.connection.value("SELECT max(at) FROM facts")
        if last is None or now > last:
            return now
        foreign = self.connection.row(
            "SELECT seq FROM facts WHERE at = :at AND writer != :writer LIMIT 1",
            at=last,
            writer=self._writer,
        )
        if foreign is not None:
            return iso(parse_iso(last) + timedelta(milliseconds=1))
        return str(last)


class LedgerWrites(LedgerPart):
    """The writing half of `Ledger`."""

    _clock: Clock
    _active: threading.local
    _restoring: bool
    _text: Path | None
    anchors: Path
    writer: str
    origin: str | None = None
    """Who adds facts, where, in what role, e.g. "ada@desk person"; None: nobody said."""
    _said: str | None = None
    """The hash of the last fact that was added under `origin`."""
    _session: str | None = None
    """Of the agents' session whose tools write; see `of_session`."""

    def acts_as(self, origin: str) -> None:
        if origin != self.origin:
            self.origin, self._said = origin, None

    def of_session(self, session: str) -> Self:
        """The same ledger as the tools of an agents' session write it: it takes no fact once the
        end of the session is one."""
        theirs = copy.copy(self)
        theirs._session = session
        return theirs

    def require_session(self) -> None:
        """Asked right before what is no fact, e.g. a process that a tool starts. Raises
        RefusedError (session_over) where the session whose ledger this is has ended."""
        if self._session is not None:
            with self._database.read() as connection:
                _require_going(connection, self._session)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Writer]:
        """Append several facts as one step; nests."""
        active: Writer | None = getattr(self._active, "writer", None)
        if active is not None:
            yield active
            return
        writer: Writer | None = None
        drained: list[Path] = []
        try:
            with self._appending() as (writer, drained):
                yield writer
        except CommitUnknownError as error:
            self._require_stored(writer, error)
        # After the commit: a process killed before it leaves the files; one killed after it has
        # their names in the table `spooled`, so they are not recorded twice.
        for path in drained:
            path.unlink(missing_ok=True)
        if writer is not None and writer.appended:
            last = writer.appended[-1]
            self._said = last.hash
            write_anchor(self.anchors, Anchor(writer=last.writer, seq=last.seq, hash=last.hash))

    @contextlib.contextmanager
    def _appending(self) -> Iterator[tuple[Writer, list[Path]]]:
        with self._database.write() as connection:
            require_not_moved(connection, self._database.place)
            if self._restoring:
                require_anchored(connection, read_anchors(self.anchors), self._database.place)
            self.require_imported()
            writer = Writer(
                connection,
                writer=self.writer,
                clock=self._clock,
                origin=self.origin,
                said=self._said,
            )
            self._active.writer = writer
            try:
                # In the same transaction: what was spooled happened before what is appended now,
                # and the rules of the new facts may need it.
                drained = _drain(self._spool, connection, writer.append)
                self.require_session()
                yield writer, drained
            finally:
                self._active.writer = None

    def _require_stored(self, writer: Writer | None, error: CommitUnknownError) -> None:
        """After a commit without an answer: asks whether the facts are there. Raises LedgerError
        when they are not, and `error` when nobody can tell."""
        if writer is None or not writer.appended:
            raise error
        last = writer.appended[-1]
        error.fact = last.hash
        try:
            with self._database.read() as connection:
                there = fact_at(connection, last.writer, last.seq)
        except LedgerError:
            raise error from None
        if there is None or there.hash != last.hash:
            raise LedgerError(
                f"{self._database.place} went away before the step was stored; nothing of it was"
                " written.",
                hint="Run the command again.",
                code="ledger_connection_lost",
            ) from error

    def facts_wait(self) -> bool:
        """Whether the ledger is empty and the project brings facts as text: a fresh clone."""
        if self._text is None:
            return False
        with self._database.read() as connection:
            empty = connection.row("SELECT position FROM facts LIMIT 1") is None
        return empty and bool(text_files(self._text))

    def require_imported(self) -> None:
        """Raises NotFoundError (facts_not_imported) while facts wait: a fact of our own would take
        one of their ids."""
        if self._text is not None and self.facts_wait():
            raise not_imported(self._text)

    def append(self, fact: Fact) -> StoredFact:
        """Store one fact and its effect. Raises what `Writer.append` does, and LedgerError."""
        try:
            with self.transaction() as writer:
                return writer.append(fact)
        except LedgerDamagedError:
            raise  # not spooled: the next write would meet the same damage
        except LedgerError as error:
            raise _keep(self._spool, fact, iso(self._clock.now()), error) from error

    @property
    def _spool(self) -> Path:
        return self._database.folder / "spool"


def _require_going(connection: Connection, session: str) -> None:
    # A plain session of `claude`, which no loop leads, has no row and no end.
    ended = connection.value("SELECT ended_at FROM sessions WHERE id = :id", id=session)
    if ended is not None:
        raise RefusedError(
            f"Session {session} ended at {ended}: what its tools still do counts no more.",
            hint="Nothing to do: its step is repeated in a fresh session.",
            code="session_over",
        )


def _entered(fact: Fact) -> dict[str, Any]:
    """The fact's fields as they are recorded: what people, agents and programs said is plain text;
    what is found again by its bytes stays as it is."""
    return {
        name: value if name in fact.EXACT else plain_value(value)
        for name, value in fact.body().items()
    }


def _keep(folder: Path, fact: Fact, at: str, error: LedgerError) -> LedgerError:
    """Spool `fact`; the error to raise says where. `error` itself when the kind is not spooled or
    the file cannot be written either."""
    if not fact.SPOOLED:
        return error
    path = folder / f"{at.replace(':', '')}-{secrets.token_hex(4)}.json"
    value: dict[str, Any] = {"kind": fact.KIND, "body": _entered(fact)}
    if isinstance(error, CommitUnknownError):
        value["hash"] = error.fact
    with contextlib.suppress(OSError):
        atomic_write(path, canonical_json(value) + b"\n")
        return type(error)(
            f"{error.message} The fact ({fact.KIND}) was kept in {path}.",
            hint="It is recorded at the next write to the ledger; nothing is lost.",
            code=error.code,
        )
    return error


def _is_stored(connection: Connection, digest: str | None) -> bool:
    """Of a fact whose commit nobody answered."""
    query = "SELECT seq FROM facts WHERE hash = :hash"
    return digest is not None and connection.value(query, hash=digest) is not None


def _drain(folder: Path, connection: Connection, append: Callable[[Fact], Any]) -> list[Path]:
    """Append what was spooled, oldest first; returns the files to remove after the commit.

    A file that holds no fact, or one that the rules refuse by now, is renamed to `*.refused`.
    """
    if not folder.is_dir():
        return []
    done: list[Path] = []
    for path in sorted(folder.glob("*.json")):
        if connection.row(_SPOOLED, name=path.name) is None:
            try:
                value = json.loads(path.read_bytes())
                kind, body = value["kind"], value["body"]
                # A savepoint: a fact that its rule refuses must not undo the caller's transaction.
                with connection.savepoint():
                    if not _is_stored(connection, value.get("hash")):
                        append(fact_from(kind, body))
            except FileNotFoundError:
                continue  # another process drained it
            except (ValueError, KeyError, TypeError, UsageError, LedgerError):
                path.rename(path.with_suffix(".refused"))
                continue
            connection.insert(spooled, [{"name": path.name}])
        done.append(path)
    return done
