"""Facts that git brought and the ledger has not taken in: those in the text form, and those that
a merge left out of it.

A chain of another clone is a file that this ledger only continues from its text. When a merge keeps
"ours" of that file, its newer facts are gone from the working tree, but not from git's history.
"""

from collections import defaultdict
from typing import NamedTuple

from harness.artifacts.git import (
    GitFailedError,
    in_repository,
    object_reader,
    objects,
    run_git,
)
from harness.artifacts.locate import Layout
from harness.errors import LedgerDamagedError
from harness.ledger.chain import StoredFact, unseal
from harness.ledger.ledger import Ledger
from harness.ledger.text_form import fact_at, last_line, text_files
from harness.ledger.text_parts import SUFFIX, writer_of

_PATIENCE = 60.0
_NEWEST = 50
"""Versions of a text that are read, where its size does not say which goes furthest."""


class Ahead(NamedTuple):
    """A writer whose text has facts that the ledger lacks."""

    writer: str
    last: int
    """The number of its last fact there."""
    path: str
    """Of the text, relative to the project."""
    commit: str = ""
    """The commit that has it, when the working tree's text has not."""
    tracked: bool = True
    """Whether git has the text; one that it has not came from nobody knows where."""

    @property
    def came(self) -> str:
        return "came with git" if self.tracked else "are in a file that git does not track"

    @property
    def words(self) -> str:
        return (
            f"facts of writer {self.writer} up to {self.last} {self.came}"
            f" ({self.path}{f' of commit {self.commit[:12]}' if self.commit else ''}) and are not"
            " in the ledger"
        )

    @property
    def way(self) -> str:
        """The lines that take them in."""
        restore = f"`git checkout {self.commit[:12]} -- {self.path}`, then " if self.commit else ""
        return f"{restore}`harness ledger import`"


def facts_ahead(ledger: Ledger, layout: Layout) -> list[Ahead]:
    """Of the text in the working tree. One look at the end of each file; a damaged one is for
    `verify`."""
    found = []
    try:
        files = text_files(layout.facts_dir)
    except LedgerDamagedError:
        return []
    for path in files:
        fact = _fact(last_line(path)[0], path.name.removesuffix(SUFFIX))
        if fact is not None and _lacks(ledger, fact):
            name = layout.relative(path)
            tracked = _is_tracked(layout, name)
            found.append(Ahead(fact.writer, fact.seq, name, tracked=tracked))
    return found


def _is_tracked(layout: Layout, name: str) -> bool:
    try:
        if not in_repository(layout.root):
            return False
        return bool(run_git(layout.root, "ls-files", "--", name)[1].strip())
    except GitFailedError:
        return False


def facts_left_out(ledger: Ledger, layout: Layout) -> list[Ahead]:
    """Of every text in git's history, also behind a merge that kept ours, where it goes beyond the
    ledger and the working tree. Empty without a repository."""
    try:
        if not in_repository(layout.root):
            return []
        texts, rolled = _texts(layout)
        sizes = {name: size for _, name, size in objects(layout.root, timeout_s=_PATIENCE)}
        there = {ahead.writer: ahead.last for ahead in facts_ahead(ledger, layout)}
        found = []
        with object_reader(layout.root) as read:
            for name, blobs in sorted(texts.items()):
                writer = name.removesuffix(SUFFIX)
                closed = writer in rolled
                known = [blob for blob in blobs if blob in sizes]
                # It only grows, so the largest has all; unless parts of it were closed.
                asked = sorted(known, key=lambda one: -sizes[one])[:1]
                asked += known[:_NEWEST] if closed else []
                ends = [(fact, blob) for blob in asked if (fact := _end(read(blob), writer))]
                if not ends:
                    continue
                fact, blob = max(ends, key=lambda one: one[0].seq)
                if _lacks(ledger, fact) and fact.seq > there.get(fact.writer, 0):
                    text = layout.facts_dir / (f"{writer}.*" if closed else name)
                    found.append(Ahead(fact.writer, fact.seq, layout.relative(text), blobs[blob]))
    except GitFailedError:  # nobody can say; the ledger itself is judged without it
        return []
    return found


def _texts(layout: Layout) -> tuple[dict[str, dict[str, str]], set[str]]:
    """Name of a text -> its versions, blob to the commit that made it; and the writers of whose
    text a part was closed. With the full history, since
    git else leaves out the side of a merge that came to nothing."""
    folder = layout.relative(layout.facts_dir)
    words = ("--all", "--full-history", "--format=%H", "--raw", "--no-abbrev", "--no-renames")
    _, log = run_git(layout.root, "log", *words, "--", folder, ok=(0, 128), timeout_s=_PATIENCE)
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    rolled: set[str] = set()
    commit = ""
    for line in log.decode("utf-8", "replace").splitlines():
        if not line.startswith(":"):
            commit = line.strip() or commit
            continue
        columns, _, path = line.partition("\t")
        blob, name = columns.split()[3], path.strip('"').rpartition("/")[2]
        if (writer := writer_of(name)) is not None:
            rolled.add(writer)
        if name.endswith(SUFFIX) and blob.strip("0"):
            texts[name].setdefault(blob, commit)
    return texts, rolled


def _end(text: bytes, writer: str) -> StoredFact | None:
    """The last fact of a text."""
    return _fact(text.rstrip(b"\n").rpartition(b"\n")[2], writer)


def _fact(line: bytes | None, writer: str) -> StoredFact | None:
    try:
        fact = None if line is None else unseal(line, "a line")
    except LedgerDamagedError:
        return None
    return fact if fact is not None and fact.writer == writer else None


def _lacks(ledger: Ledger, fact: StoredFact) -> bool:
    with ledger.connection() as connection:
        return fact_at(connection, fact.writer, fact.seq) is None
