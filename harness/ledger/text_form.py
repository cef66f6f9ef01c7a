"""The text form: `<folder>/<writer>.jsonl`, a line one fact's bytes, in the chain's order."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from harness.errors import LedgerDamagedError
from harness.files import atomic_write, set_aside
from harness.ledger.chain import UNLINKED, StoredFact, link_problem, unseal
from harness.ledger.database import Connection
from harness.ledger.facts import fact_from
from harness.ledger.replay import stored

_WRITER = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\Z")
SUFFIX = ".jsonl"
_TAIL = 1 << 16
DIFFERS = "differs from the ledger"


def is_writer_name(name: str) -> bool:
    """Writers name files: 1 to 64 of letters, digits, '.', '_' and '-', not beginning with a
    dot."""
    return bool(_WRITER.match(name))


def text_files(folder: Path) -> list[Path]:
    """The files of the text form, by name. Raises LedgerDamagedError for a name that is no
    writer's."""
    paths = sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []
    for path in paths:
        if not is_writer_name(path.name.removesuffix(SUFFIX)):
            raise LedgerDamagedError(
                f"{path} is not named after a writer.", hint="Move it out of that folder."
            )
    return paths


def text_path(folder: Path, writer: str) -> Path:
    return folder / f"{writer}{SUFFIX}"


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
    match the ledger is set aside and written anew."""
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
    fresh = connection.rows(
        "SELECT data FROM facts WHERE writer = :writer AND seq > :known ORDER BY seq",
        writer=writer,
        known=known,
    )
    data = b"".join(bytes(row["data"]) + b"\n" for row in fresh)
    # No sync: a text form that a power cut shortened is continued by the next export.
    if known == 0:
        atomic_write(path, data, durable=False)
    elif data:
        _append(path, end, data)
    return path if data else None


def text_problems(
    connection: Connection, folder: Path
) -> Iterator[tuple[Path, int, StoredFact | None, str]]:
    """(file, line, the ledger's or the line's fact, what is wrong) where the two differ."""
    for path in text_files(folder):
        writer = path.name.removesuffix(SUFFIX)
        query = "SELECT * FROM facts WHERE writer = :writer ORDER BY seq"
        own = map(stored, connection.rows(query, writer=writer))
        before: StoredFact | None = None
        for number, line, torn in _lines(path):
            fact = next(own, None)
            if fact is not None and (line == fact.data or (torn and fact.data.startswith(line))):
                before = fact
            elif fact is not None:
                yield path, number, fact, DIFFERS
                before = fact
            else:
                try:
                    line_fact = unseal(line, path.name)
                except LedgerDamagedError:
                    if not torn:
                        yield path, number, None, "is not a fact"
                    break
                what = link_problem(line_fact, before)
                before = line_fact
                if what is not None or line_fact.writer != writer:
                    yield (
                        path,
                        number,
                        line_fact,
                        f"does not continue the chain: {what or 'it is of another writer'}",
                    )
                    break


def read_text(path: Path) -> list[StoredFact]:
    """All facts of one file, each checked against the one before. Raises LedgerDamagedError."""
    writer = path.name.removesuffix(SUFFIX)
    chain: list[StoredFact] = []
    for number, line, torn in _lines(path):
        where = f"{path}:{number} (fact {number} of writer {writer})"
        fact = unseal(line, where)
        what = link_problem(fact, chain[-1] if chain else None)
        if what == UNLINKED and chain:
            what += f", so that one (line {number - 1}, {chain[-1].kind}) was changed, or this one"
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
        chain.append(fact)
    return chain


def _lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """(number from 1, bytes without the line end, whether the line end is missing)."""
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            yield number, line.removesuffix(b"\n"), not line.endswith(b"\n")


def last_line(path: Path) -> tuple[bytes | None, int]:
    """The last line that has an end, and the offset behind it; (None, 0) when there is none."""
    try:
        with path.open("rb") as stream:
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
    with path.open("r+b") as stream:
        stream.truncate(end)
        stream.seek(end)
        stream.write(data)
