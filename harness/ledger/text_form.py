"""The text form: a line one fact's bytes, in the chain's order; its files: see text_parts."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from harness.errors import LedgerDamagedError
from harness.files import atomic_write, naming, open_file, set_aside
from harness.ledger import text_parts
from harness.ledger.chain import UNLINKED, StoredFact, link_problem, unseal
from harness.ledger.facts import fact_from
from harness.ledger.replay import stored
from harness.ledger.store import Connection
from harness.ledger.text_parts import (
    SUFFIX,
    PartDamagedError,
    chain_lines,
    close_part,
    closed_parts,
    text_path,
    unbroken,
    writer_of,
)

_WRITER = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\Z")
_TAIL = 1 << 16
DIFFERS = "differs from the ledger"
UNREADABLE = "cannot be unpacked"
_NO_END = "is not the end of its writer's text, and the file that goes on is missing"


def is_writer_name(name: str) -> bool:
    """Writers name files: 1 to 64 of letters, digits, '.', '_' and '-', not beginning with a
    dot."""
    return bool(_WRITER.match(name))


def text_files(folder: Path) -> list[Path]:
    """The files of the text form that grow, by name. Raises LedgerDamagedError for a name that is
    no writer's, and for closed parts without the file that goes on behind them."""
    paths = _tails(folder)
    for part in _without_end(folder, paths):
        raise LedgerDamagedError(
            f"{part} {_NO_END}.",
            hint="Restore the whole folder from git, or run `harness ledger export` where the"
            " ledger is.",
        )
    return paths


def _without_end(folder: Path, tails: list[Path]) -> list[Path]:
    """Closed parts of writers that have no file in `tails`."""
    known = {path.name.removesuffix(SUFFIX) for path in tails}
    closed = sorted(folder.glob(f"*{SUFFIX}.gz")) if folder.is_dir() else []
    return [path for path in closed if (writer_of(path.name) or "") not in {*known, ""}]


def _tails(folder: Path) -> list[Path]:
    paths = sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []
    for path in paths:
        if not is_writer_name(path.name.removesuffix(SUFFIX)):
            raise LedgerDamagedError(
                f"{path} is not named after a writer.", hint="Move it out of that folder."
            )
    return paths


def writers(connection: Connection) -> list[str]:
    """All writers with facts, by name."""
    # A step a writer through the index: DISTINCT would scan every fact.
    names: list[str] = []
    query = "SELECT min(writer) FROM facts"
    name = connection.value(query)
    while name is not None:
        names.append(name)
        name = connection.value(f"{query} WHERE writer > :name", name=name)
    return names


def fact_at(connection: Connection, writer: str, seq: int) -> StoredFact | None:
    row = connection.row(
        "SELECT * FROM facts WHERE writer = :writer AND seq = :seq", writer=writer, seq=seq
    )
    return stored(row) if row is not None else None


def write_text(connection: Connection, folder: Path, writer: str) -> Path | None:
    """Append one writer's new facts to its file; the path when it changed. A file that does not
    match the ledger is set aside and written anew; what is full is closed."""
    path = text_path(folder, writer)
    last, end = last_line(path)
    known = 0
    if last is not None:
        try:
            written = unseal(last, f"the last line of {path}")
        except LedgerDamagedError:
            written = None
        here = fact_at(connection, writer, written.seq) if written is not None else None
        # Ahead of the ledger: facts that came with `git pull` and are not imported yet.
        if written is not None and written.writer == writer and here is None and written.seq > 1:
            return None
        if written is None or here is None or here.data != last:
            set_aside(path, "differs")
        else:
            known = written.seq
    closed = unbroken(closed_parts(folder, writer))
    if known == 0 or _begins_with(path) != closed + 1:
        return _write_anew(connection, folder, writer, closed)
    fresh = "FROM facts WHERE writer = :writer AND seq > :known"
    more = connection.value(f"SELECT sum(length(data) + 1) {fresh}", writer=writer, known=known)
    if not more:
        return None
    if end + more > text_parts.LIMIT:
        return _write_anew(connection, folder, writer, closed)
    rows = connection.stream(f"SELECT data {fresh} ORDER BY seq", writer=writer, known=known)
    _append(path, end, b"".join(bytes(row["data"]) + b"\n" for row in rows))
    return path


def is_whole(folder: Path, writer: str) -> bool:
    """Whether a writer's text has no part missing before its end."""
    path = text_path(folder, writer)
    return path.exists() and _begins_with(path) == unbroken(closed_parts(folder, writer)) + 1


def _begins_with(path: Path) -> int:
    """The number of the first fact in the file; 0 where that is none."""
    with open_file(path) as stream:
        try:
            return unseal(stream.readline().removesuffix(b"\n"), path.name).seq
        except LedgerDamagedError:
            return 0


def _write_anew(connection: Connection, folder: Path, writer: str, closed: int) -> Path | None:
    """All facts behind `closed`: full parts are closed first, so that a kill loses none."""
    query = "SELECT data FROM facts WHERE writer = :writer AND seq > :closed ORDER BY seq"
    lines: list[bytes] = []
    size, first = 0, closed + 1
    for row in connection.stream(query, writer=writer, closed=closed):
        line = bytes(row["data"]) + b"\n"
        if lines and size + len(line) > text_parts.LIMIT:
            close_part(folder, writer, first, lines)
            size, first, lines = 0, first + len(lines), []
        lines.append(line)
        size += len(line)
    if not lines:
        return None
    # No sync: a text form that a power cut shortened is continued by the next export.
    path = text_path(folder, writer)
    atomic_write(path, b"".join(lines), durable=False)
    return path


Difference = tuple[Path, int, StoredFact | None, str]
"""(file, line, the ledger's or the line's fact, what is wrong)."""


def text_problems(connection: Connection, folder: Path) -> Iterator[Difference]:
    """Where text and ledger differ."""
    tails = _tails(folder)
    for part in _without_end(folder, tails):
        yield part, 1, None, _NO_END
    for path in tails:
        writer = path.name.removesuffix(SUFFIX)
        if (gap := _gap(folder, writer)) is not None:
            yield gap
            continue
        try:
            yield from _differences(connection, folder, writer)
        except PartDamagedError as error:
            yield error.path, 1, None, UNREADABLE


def _differences(connection: Connection, folder: Path, writer: str) -> Iterator[Difference]:
    query = "SELECT * FROM facts WHERE writer = :writer ORDER BY seq"
    own = map(stored, connection.stream(query, writer=writer))
    before: StoredFact | None = None
    for place, number, line, torn in chain_lines(folder, writer):
        fact = next(own, None)
        if fact is not None and (line == fact.data or (torn and fact.data.startswith(line))):
            before = fact
        elif fact is not None:
            yield place, number, fact, DIFFERS
            before = fact
        else:
            try:
                line_fact = unseal(line, place.name)
            except LedgerDamagedError:
                if not torn:
                    yield place, number, None, "is not a fact"
                break
            what = link_problem(line_fact, before)
            before = line_fact
            if what is not None or line_fact.writer != writer:
                yield (
                    place,
                    number,
                    line_fact,
                    f"does not continue the chain: {what or 'it is of another writer'}",
                )
                break


def _gap(folder: Path, writer: str) -> Difference | None:
    """The first part before which facts are missing."""
    parts = closed_parts(folder, writer)
    last = unbroken(parts)
    begins = [(part.first, part.path) for part in parts if part.first > last]
    tail = text_path(folder, writer)
    first, path = (begins or [(_begins_with(tail), tail)])[0]
    if first <= last + 1:
        return None
    what = f"does not continue the chain: facts {last + 1} to {first - 1} are missing"
    return path, 1, None, what


def read_chain(folder: Path, writer: str) -> Iterator[StoredFact]:
    """All facts of one writer, each checked against the one before. Raises LedgerDamagedError."""
    before: StoredFact | None = None
    for path, number, line, torn in chain_lines(folder, writer):
        count = before.seq + 1 if before else 1
        where = f"{path}:{number} (fact {count} of writer {writer})"
        fact = unseal(line, where)
        what = link_problem(fact, before)
        if what == UNLINKED and before is not None:
            there = f"line {number - 1}" if number > 1 else "the end of the part before"
            what += f", so that one ({there}, {before.kind}) was changed, or this one"
        if fact.writer != writer:
            what = f"it is of writer {fact.writer}"
        if torn:
            what = "the line is cut: it has no end"
        if what is not None:
            raise LedgerDamagedError(
                f"{where}, {fact.kind}, is damaged: {what}.",
                hint=(
                    "Restore the file from git, or export it again from the ledger that it came"
                    " from."
                ),
            )
        fact_from(fact.kind, fact.body())
        before = fact
        yield fact


def last_line(path: Path) -> tuple[bytes | None, int]:
    """The last line that has an end, and the offset behind it; (None, 0) when there is none."""
    try:
        with open_file(path) as stream:
            size = stream.seek(0, os.SEEK_END)
            span = _TAIL
            while True:
                start = max(0, size - span)
                stream.seek(start)
                block = stream.read(size - start)
                end = block.rfind(b"\n")
                begin = block.rfind(b"\n", 0, max(end, 0))
                if end >= 0 and (begin >= 0 or start == 0):
                    return block[begin + 1 : end], start + end + 1
                if start == 0:
                    return None, 0
                span *= 4
    except FileNotFoundError:
        return None, 0


def _append(path: Path, end: int, data: bytes) -> None:
    """Write `data` at the offset `end`, over a torn last line."""
    with naming(path), path.open("r+b") as stream:
        stream.truncate(end)
        stream.seek(end)
        stream.write(data)
