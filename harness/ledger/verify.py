"""Is every fact as it was written? Reads only, and says which fact is not."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from harness.clock import SystemClock
from harness.domain.team_ledger import Place
from harness.errors import LedgerDamagedError
from harness.ledger.anchors import Anchor, anchored_writers, meta_problems, read_anchor
from harness.ledger.chain import StoredFact, link_problem
from harness.ledger.creation import is_made, open_database, require_never_made
from harness.ledger.database import scratch
from harness.ledger.facts import apply
from harness.ledger.replay import facts_in_order
from harness.ledger.schema import Row, Table
from harness.ledger.state import Key, SqlState, state_tables
from harness.ledger.state_version import make_tables
from harness.ledger.store import Connection, DuplicateRowError
from harness.ledger.text_form import text_problems

_SHOWN = 20


class Problem(NamedTuple):
    """`seq` 0 and an empty writer: it is about the file or about a table, not about one fact."""

    writer: str
    seq: int
    kind: str
    message: str


def verify(place: Place, anchors: Path, facts_dir: Path | None = None) -> list[Problem]:
    """Everything that is not as it was written.

    Checks the database's structure and version, the table meta against the noted writer, every hash
    and link, the columns that repeat parts of a fact, the anchors, the state tables against a
    replay, and the text form in `facts_dir`, whose missing tail is only stale. Raises LedgerError
    for a ledger that is missing, busy or of another version.
    """
    problems: list[Problem] = []
    try:
        if not is_made(place, SystemClock()):
            require_never_made(place, anchors, SystemClock())
        # Before the database is read: see read_anchors.
        known = _read_anchors(anchors, problems)
        # Read-only: a check must not repair, or update the state of, what it checks.
        database = open_database(place, clock=SystemClock(), read_only=True, busy_seconds=30.0)
        try:
            with database.read() as connection:
                problems += [
                    Problem("", 0, "meta", f"{text[0].upper()}{text[1:]}")
                    for text in meta_problems(connection, anchors)
                ]
                problems.extend(_problems(connection, known, facts_dir))
                problems.extend([] if anchored_writers(anchors) else _no_anchor(connection))
        finally:
            database.close()
    except LedgerDamagedError as error:
        problems.append(Problem("", 0, "database", error.message))
    return problems


def _read_anchors(folder: Path, problems: list[Problem]) -> list[Anchor]:
    known: list[Anchor] = []
    for writer in anchored_writers(folder):
        try:
            anchor = read_anchor(folder, writer)
        except LedgerDamagedError as error:
            problems.append(Problem(writer, 0, "anchor", error.message))
        else:
            known += [anchor] if anchor is not None else []
    return known


def _problems(
    connection: Connection, anchors: list[Anchor], facts_dir: Path | None
) -> Iterator[Problem]:
    yield from (Problem("", 0, "database", line) for line in connection.complaints())
    broken = list(_chain_problems(connection))
    yield from broken
    yield from _anchor_problems(connection, anchors)
    # A broken chain may make the replay fail or differ too: one cause, one report.
    if not broken:
        yield from _state_problems(connection)
    if facts_dir is not None:
        for path, line, fact, what in text_problems(connection, facts_dir):
            name = f"fact {fact.seq} of writer {fact.writer} ({fact.kind})" if fact else "a line"
            writer, seq, kind = (
                (fact.writer, fact.seq, fact.kind) if fact else ("", 0, "text form")
            )
            yield Problem(writer, seq, kind, f"{path}:{line}: {name} {what}.")


def _chain_problems(connection: Connection) -> Iterator[Problem]:
    before: StoredFact | None = None
    place = 0
    for row in connection.stream("SELECT * FROM facts ORDER BY writer, seq"):
        data = row["data"].encode() if isinstance(row["data"], str) else bytes(row["data"] or b"")
        fact = StoredFact(**{**row, "data": data})
        if (strange := _strange_columns(row)) is not None:
            seq = fact.seq if type(fact.seq) is int else 0
            yield Problem(
                str(fact.writer),
                seq,
                str(fact.kind),
                f"A fact of writer {fact.writer} has {strange}.",
            )
            continue
        if before is not None and before.writer != fact.writer:
            before = None
        what = link_problem(fact, before)
        if what is not None and before is not None:
            # A changed hash column is one fact's fault: its successor links to what the bytes give.
            honest = replace(before, hash=hashlib.sha256(before.data).hexdigest())
            what = link_problem(fact, honest) and what
        if what is None and not isinstance(row["data"], bytes):
            what = f"it is stored as {type(row['data']).__name__}, not as bytes"
        if what is not None:
            name = f"Fact {fact.seq} of writer {fact.writer} ({fact.kind})"
            yield Problem(
                fact.writer, fact.seq, fact.kind, f"{name} is not as it was written: {what}."
            )
        # Positions rise along a chain, also after an import: a row that was moved would be replayed
        # in another place by readers that go by position.
        if before is not None and row["position"] <= place:
            text = (
                f"Fact {fact.seq} of writer {fact.writer} ({fact.kind}) was moved before fact"
                f" {before.seq}."
            )
            yield Problem(fact.writer, fact.seq, fact.kind, text)
        place = row["position"]
        before = fact


def _strange_columns(row: Row) -> str | None:
    # SQLite stores any type in any column, so an edited row may hold text where a number belongs.
    wrong = [name for name in ("position", "seq") if type(row[name]) is not int]
    wrong += [name for name in ("writer", "hash", "kind", "at") if type(row[name]) is not str]
    return f"{wrong[0]} {row[wrong[0]]!r}" if wrong else None


def _no_anchor(connection: Connection) -> Iterator[Problem]:
    """An anchor follows its fact, so after a crash it may be missing, but not of a whole chain."""
    facts_of_one = connection.value("SELECT max(seq) FROM facts") or 0
    if facts_of_one > 1:
        text = (
            f"No chain anchor is left, and a writer has {facts_of_one} facts: nobody can tell"
            " whether more were cut."
        )
        yield Problem("", 0, "anchor", f"{text} The next fact writes its writer's anchor again.")


def _anchor_problems(connection: Connection, anchors: list[Anchor]) -> Iterator[Problem]:
    for anchor in anchors:
        writer = anchor.writer
        of_writer = "SELECT seq, hash FROM facts WHERE writer = :writer"
        named = connection.row(f"{of_writer} AND seq = :seq", writer=writer, seq=anchor.seq)
        last = connection.row(f"{of_writer} ORDER BY seq DESC LIMIT 1", writer=writer)
        if named is None:
            end = f"ends at fact {last['seq']}" if last else "holds none of its facts"
            text = (
                f"The tail of writer {writer} was cut: the anchor names fact {anchor.seq}, the"
                f" ledger {end}."
            )
            yield Problem(writer, (last["seq"] if last else 0) + 1, "cut", text)
        elif named["hash"] != anchor.hash:
            text = (
                f"Fact {anchor.seq} of writer {writer} is not the one that the anchor names: the"
                " chain was replaced."
            )
            yield Problem(writer, anchor.seq, "anchor", text)


def _state_problems(connection: Connection) -> Iterator[Problem]:
    """The state against a replay, row by row: a large ledger does not fit into memory."""
    with scratch() as expected:
        make_tables(expected, state_tables())
        try:
            state = SqlState(expected)
            for fact in facts_in_order(connection):
                apply(state, fact)
        except LedgerDamagedError as error:
            yield Problem("", 0, "replay", error.message)
            return
        except DuplicateRowError as error:
            yield Problem("", 0, "replay", f"Two facts make one row: {error.message}.")
            return
        for table in state_tables():
            yield from _table_problems(connection, expected, table)


def _table_problems(
    connection: Connection, expected: Connection, table: Table
) -> Iterator[Problem]:
    wrong = 0
    for key in _wrong_keys(connection, expected, table):
        wrong += 1
        if wrong <= _SHOWN:
            name = "/".join(str(part) for part in key)
            text = (
                f"{name} in the table {table.name} is not what the facts add up to: run `harness"
                " ledger rebuild`."
            )
            yield Problem("", 0, table.name, text)
    if wrong > _SHOWN:
        text = f"... and {wrong - _SHOWN} more rows of {table.name}."
        yield Problem("", 0, table.name, text)


def _wrong_keys(connection: Connection, expected: Connection, table: Table) -> Iterator[Key]:
    """Of rows that differ, and of rows that only one of the two has."""
    order = f"SELECT * FROM {table.name} ORDER BY {', '.join(table.key)}"
    for here, there in ((expected, connection), (connection, expected)):
        for row in here.stream(order):
            key = tuple(row[name] for name in table.key)
            other = SqlState(there).get(table.name, *key)
            if other is None or (here is expected and other != row):
                yield key
