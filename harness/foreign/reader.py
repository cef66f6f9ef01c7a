"""One log, whatever its form, read as it grows."""

import os
from pathlib import Path
from typing import BinaryIO

from harness.artifacts.content import open_regular
from harness.domain.words import some
from harness.errors import NotFoundError, UsageError
from harness.foreign.formats import SNIFFED_BYTES, parser_for
from harness.foreign.log_rows import Row
from harness.foreign.parser import LogParser
from harness.foreign.runs_in_log import RunsInLog

BLOCK = 1 << 20
"""Bytes that one call reads at most, so that a call costs the same however large the file is."""
_HEAD_BYTES = 4096


class ByteTail:
    """Follow a growing file by byte offset: return each byte once, start again when it is replaced.

    A read costs the same however large the file is: it compares the first 4 KiB and reads what is
    new.
    """

    def __init__(self, path: Path, *, follow: bool = True) -> None:
        self.path, self._follow = path, follow
        self.problem: str | None = None
        """Why the file cannot be read; None while it can, and while there is no file yet."""
        self.present = False
        self.size = 0
        self.behind = 0
        """Bytes that were there at the last read and were not read."""
        self.modified: float | None = None
        """Time of the last change, Unix seconds."""
        self.replacements = 0
        """Number of times another or a shorter file took its place; earlier bytes then no longer
        count."""
        self._inode: int | None = None
        self._offset, self._head = 0, b""

    def read(self, most: int) -> bytes:
        """The next bytes, at most `most`; none when nothing is new."""
        try:
            with open_regular(self.path, follow=self._follow) as stream:
                self.present, self.problem = True, None
                return self._read(stream, most)
        except NotFoundError:
            self.present = False
        except (UsageError, OSError) as error:  # a pipe, no permission, a network disk that is gone
            self.problem = str(error)
        return b""

    def _read(self, stream: BinaryIO, most: int) -> bytes:
        status = os.fstat(stream.fileno())
        head = stream.read(_HEAD_BYTES)
        # The head too: a file that is truncated and written anew may be longer than the offset by
        # the time of the next read, under the same inode.
        other = self._inode is not None and (
            status.st_ino != self._inode
            or status.st_size < self._offset
            or not head.startswith(self._head)
        )
        if other:
            self._offset, self._head = 0, b""
            self.replacements += 1
        self._inode, self.modified = status.st_ino, status.st_mtime
        if len(self._head) < _HEAD_BYTES:
            self._head = head[: min(_HEAD_BYTES, self._offset + most)]
        stream.seek(self._offset)
        data = stream.read(most)
        self._offset += len(data)
        self.size = status.st_size
        self.behind = max(0, status.st_size - self._offset)
        return data


class LogReader:
    """Returns each row once: {run, event?, step?, epoch?, t?, learning_rate?, metrics}; rows of the
    run logger are unchanged.

    A file that does not exist yet has no rows. When another file takes its place, `restarts` counts
    it and its rows come from the start. With `follow` False a symbolic link is not followed.
    """

    def __init__(self, path: Path, *, follow: bool = True) -> None:
        self.path = path
        self._tail = ByteTail(path, follow=follow)
        self._head = b""
        self._parser: LogParser | None = None
        self._runs = RunsInLog()

    def read_more(self, most: int = BLOCK) -> list[Row]:
        """The rows in the next `most` bytes; `behind` is how many bytes are left."""
        before = self._tail.replacements
        data = self._tail.read(most)
        if self._tail.replacements != before:
            self._head, self._parser, self._runs = b"", None, RunsInLog()
        if self._parser is not None:
            return self._placed(self._parser.feed(data))
        self._head += data
        self._parser = parser_for(self.path, self._head[:SNIFFED_BYTES], whole=False)
        return self._begin()

    def finish(self) -> list[Row]:
        """The last rows, when nothing more will come."""
        rows: list[Row] = []
        if self._parser is None and self._head:
            self._parser = parser_for(self.path, self._head, whole=True)
            rows = self._begin()
        return rows if self._parser is None else rows + self._placed(self._parser.finish())

    @property
    def format(self) -> str | None:
        """The form in words; None while too few bytes are known."""
        return None if self._parser is None else self._parser.name

    @property
    def is_ledger(self) -> bool:
        """Whether it lists experiments, not the steps of one training."""
        return self._parser is not None and self._parser.is_ledger

    @property
    def behind(self) -> int:
        return self._tail.behind

    @property
    def size(self) -> int:
        """Bytes, at the last read."""
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
        """What a person should know about the file: damage, copies, replacements."""
        notes: list[str] = []
        if self._parser is not None:
            notes += self._parser.warnings.first
            more = self._parser.warnings.count - len(self._parser.warnings.first)
            notes += [f"and {some(more, 'more such line')}"] if more > 0 else []
            notes += self._parser.notes()
        if self._runs.copies:
            notes.append(
                f"{some(self._runs.copies, 'row')} repeated an earlier row exactly and counted once"
            )
        if self._tail.replacements:
            notes.append(
                f"the file was replaced {some(self._tail.replacements, 'time')}; the newest counts"
            )
        return notes

    def _begin(self) -> list[Row]:
        if self._parser is None:
            return []
        head, self._head = self._head, b""
        return self._placed(self._parser.feed(head))

    def _placed(self, rows: list[Row]) -> list[Row]:
        return [placed for row in rows for placed in self._runs.feed(row)]


def read_whole(path: Path) -> tuple[LogReader, list[Row]]:
    """All rows of a log that no longer grows."""
    reader = LogReader(path)
    rows = reader.read_more()
    while reader.behind:
        rows += reader.read_more()
    return reader, rows + reader.finish()
