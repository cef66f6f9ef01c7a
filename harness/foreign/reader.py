"""One log, whatever its format, read as it grows."""

from pathlib import Path

from harness.domain.words import some
from harness.foreign.formats import SNIFFED_BYTES, Parser, parser_for
from harness.foreign.rows import Row
from harness.foreign.runs import Runs
from harness.foreign.status_documents import StatusDocument
from harness.foreign.tables import Table
from harness.foreign.tail import ByteTail

BLOCK = 1 << 20
"""Bytes a call reads at most: what a call costs does not grow with the file."""


class LogReader:
    """Gives each row once: {run, event?, step?, epoch?, t?, learning_rate?, metrics}; the run
    logger's are unchanged.

    A file that does not exist yet has no rows. When another one takes its place, `restarts` counts
    it and all its rows come from the start. With `follow` False a link in the file's place is not
    followed.
    """

    def __init__(self, path: Path, *, follow: bool = True) -> None:
        self.path = path
        self._tail = ByteTail(path, follow=follow)
        self._head = b""
        self._parser: Parser | None = None
        self._runs = Runs()

    def read_more(self, most: int = BLOCK) -> list[Row]:
        """The rows in the next `most` bytes. `behind` says whether there is more."""
        before = self._tail.replacements
        data = self._tail.read(most)
        if self._tail.replacements != before:
            self._head, self._parser, self._runs = b"", None, Runs()
        if self._parser is not None:
            return self._placed(self._parser.feed(data))
        self._head += data
        self._parser = parser_for(self.path, self._head[:SNIFFED_BYTES], whole=False)
        return self._begin()

    def finish(self) -> list[Row]:
        """What is left when nothing more will come: a complete last line without its end."""
        rows: list[Row] = []
        if self._parser is None and self._head:
            self._parser = parser_for(self.path, self._head, whole=True)
            rows = self._begin()
        return rows if self._parser is None else rows + self._placed(self._parser.finish())

    @property
    def format(self) -> str | None:
        """In words; None while too little of it is known."""
        return None if self._parser is None else self._parser.name

    @property
    def is_ledger(self) -> bool:
        """Whether it lists experiments, not the steps of one training."""
        return isinstance(self._parser, Table) and self._parser.is_ledger

    @property
    def behind(self) -> int:
        return self._tail.behind

    @property
    def size(self) -> int:
        """Bytes, at the last look."""
        return self._tail.size

    @property
    def present(self) -> bool:
        return self._tail.present

    @property
    def modified(self) -> float | None:
        return self._tail.modified

    @property
    def restarts(self) -> int:
        return self._tail.replacements

    @property
    def problem(self) -> str | None:
        """Why it cannot be read at all."""
        return self._tail.problem

    @property
    def runs(self) -> int:
        return self._runs.count

    def notes(self) -> list[str]:
        """What a person should know of the file: damage, copies, several runs."""
        found: list[str] = []
        if self._parser is not None:
            found += self._parser.warnings.first
            more = self._parser.warnings.count - len(self._parser.warnings.first)
            found += [f"and {some(more, 'more such line')}"] if more > 0 else []
            if isinstance(self._parser, Table) and self._parser.short > 1:
                found.append(f"{self._parser.short} lines have fewer cells than the header")
        if isinstance(self._parser, Table) and self._parser.crashed:
            found.append(
                f"{some(self._parser.crashed, 'experiment')} crashed: the numbers beside that word"
                " are left out"
            )
        if isinstance(self._parser, StatusDocument):
            found += self._parser.notes
        if self._runs.copies:
            found.append(
                f"{some(self._runs.copies, 'row')} had been there before, value for value, and"
                " count once"
            )
        if self._tail.replacements:
            found.append(
                f"the file was replaced {some(self._tail.replacements, 'time')}; the newest counts"
            )
        return found

    def _begin(self) -> list[Row]:
        if self._parser is None:
            return []
        head, self._head = self._head, b""
        return self._placed(self._parser.feed(head))

    def _placed(self, rows: list[Row]) -> list[Row]:
        return [placed for row in rows for placed in self._runs.feed(row)]


def read_whole(path: Path) -> tuple[LogReader, list[Row]]:
    """All rows of a log that no longer grows. Memory is that of its rows."""
    reader = LogReader(path)
    rows = reader.read_more()
    while reader.behind:
        rows += reader.read_more()
    return reader, rows + reader.finish()
