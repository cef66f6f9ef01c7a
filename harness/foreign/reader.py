"""One log, whatever its form, read as it grows."""

import contextlib
import os
from itertools import islice
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
_BLANK = b"\0 \t\r\n"
_MOST_BLANK = 64 << 10
_PACKED = {
    b"\x1f\x8b\x08": "gunzip -k",
    b"BZh": "bunzip2 -k",
    b"\xfd7zXZ\0": "unxz -k",
    b"\x28\xb5\x2f\xfd": "unzstd",
    b"PK\x03\x04": "unzip",
}
"""How a compressed file begins, and what unpacks it."""
_MOST_BESIDE = 5000
"""Entries of the log's folder among which a rotated log is looked for."""


def _ignored() -> contextlib.suppress:
    return contextlib.suppress(
        OSError,
        UsageError,
        NotFoundError,
    )


class ByteTail:
    """Follow a growing file by byte offset: return each byte once, start again when it is replaced.

    A file that was rotated is read to its end first: it stands beside the new one, under another
    name that begins alike. A read compares the first 4 KiB and reads what is new, however large
    the file is.
    """

    def __init__(
        self,
        path: Path,
        *,
        follow: bool = True,
    ) -> None:
        self.path, self._follow = path, follow
        self.problem: str | None = None
        """Why the file cannot be read; None while it can, and while there is no file yet."""
        self.present = False
        self.size = 0
        """Bytes, at the last read."""
        self.behind = 0
        """Bytes that the last read left."""
        self.modified: float | None = None
        """Time of the last change, Unix seconds."""
        self.restarts = 0
        """How often another or a shorter file took its place: earlier bytes then do not count."""
        self._inode: int | None = None
        self._offset, self._head = 0, b""
        self._rotated: Path | None = None
        """Where the file went whose rest is being read."""

    @property
    def trouble(self) -> str:
        """Why nothing can be read now, in words; empty while it can."""
        if self.problem is not None:
            return self.problem
        gone = self._inode is not None and not self.present
        return f"{self.path.name} is gone; it is waited for" if gone else ""

    def read(self, most: int) -> bytes:
        """The next bytes, at most `most`; none when nothing is new."""
        try:
            with open_regular(self.path, follow=self._follow) as stream:
                self.present, self.problem = True, None
                return self._read(stream, most)
        except NotFoundError:
            self.present, self.problem = False, None
        except (
            UsageError,
            OSError,
        ) as error:  # a pipe, no permission, a network disk that is gone
            self.problem = str(error)
        return b""

    def _read(
        self,
        stream: BinaryIO,
        most: int,
    ) -> bytes:
        status = os.fstat(stream.fileno())
        head = stream.read(_HEAD_BYTES)
        _require_unpacked(self.path, head)
        # The head too: a file that is truncated and written anew may be longer than the offset by
        # the time of the next read, under the same inode.
        other = self._inode is not None and (
            status.st_ino != self._inode
            or status.st_size < self._offset
            or not head.startswith(self._head)
        )
        if other and self._follow and self._rotated is None:
            new = not head.startswith(self._head)
            self._rotated = self._rotated_to() if new or not head else None
        if self._rotated is not None:
            return self._rest(self._rotated, most, status.st_size)
        if other:
            self._offset, self._head = 0, b""
            self.restarts += 1
        self._inode, self.modified = status.st_ino, status.st_mtime
        if len(self._head) < _HEAD_BYTES:
            self._head = head[: min(_HEAD_BYTES, self._offset + most)]
        stream.seek(self._offset)
        data = stream.read(most)
        self._offset += len(data)
        self.size = status.st_size
        self.behind = max(0, status.st_size - self._offset)
        return data

    def _rotated_to(self) -> Path | None:
        """The file that was followed so far, under its new name; None when it is gone."""
        if not self._head:
            return None
        beside = islice(
            self.path.parent.iterdir(),
            _MOST_BESIDE,
        )
        names = [each for each in beside if each.name.startswith(self.path.name)]
        for each in names:
            if each == self.path or each.is_symlink():
                continue
            with _ignored(), open_regular(each, follow=False) as stream:
                size = os.fstat(stream.fileno()).st_size
                same = stream.read(_HEAD_BYTES).startswith(self._head)
                if size >= self._offset and same:
                    return each
        return None

    def _rest(
        self,
        old: Path,
        most: int,
        size: int,
    ) -> bytes:
        """The next bytes of the rotated file; after the last ones the new file begins."""
        data, left = b"", 0
        with _ignored(), open_regular(old, follow=False) as stream:
            stream.seek(self._offset)
            data = stream.read(most)
            left = os.fstat(stream.fileno()).st_size - self._offset - len(data)
        self._offset += len(data)
        if left <= 0 or not data:
            self._rotated, self._inode = None, None
            self._offset, self._head = 0, b""
        self.size = size
        self.behind = size + max(0, left)
        return data


def _require_unpacked(path: Path, head: bytes) -> None:
    """Raises UsageError for a compressed file."""
    for begins, program in _PACKED.items():
        if head.startswith(begins):
            raise UsageError(
                f"{path.name} is compressed.",
                hint=f"Unpack it first: {program} {path.name}",
                code="log_compressed",
            )


class LogReader(ByteTail):
    """Returns each row once: {run, event?, step?, epoch?, t?, learning_rate?, metrics}; rows of the
    run logger are unchanged.

    A file that does not exist yet has no rows; those of a file that takes its place are all new.
    With `follow` False a symbolic link is not followed.
    """

    def __init__(
        self,
        path: Path,
        *,
        follow: bool = True,
    ) -> None:
        super().__init__(path, follow=follow)
        self._unparsed = b""  # what came before the form was recognised
        self._parser: LogParser | None = None
        self._runs = RunsInLog()
        self._blank = False
        """Whether it began with nothing but blanks and NUL bytes."""

    def read_more(
        self,
        most: int = BLOCK,
    ) -> list[Row]:
        """The rows in the next `most` bytes."""
        before = self.restarts
        data = self.read(most)
        if self.restarts != before:
            self._unparsed, self._parser, self._runs = b"", None, RunsInLog()
            self._blank = False
        if self._parser is not None:
            return self._placed(self._parser.feed(data))
        self._unparsed += data
        if len(self._unparsed) > _MOST_BLANK and not self._unparsed.strip(_BLANK):
            self._unparsed = b""  # as a file system leaves a file that was never written
            self._blank = True
        self._parser = parser_for(
            self.path,
            self._unparsed[:SNIFFED_BYTES],
            whole=False,
        )
        return self._begin()

    def finish(self) -> list[Row]:
        """The last rows, when nothing more will come."""
        rows: list[Row] = []
        if self._parser is None and self._unparsed:
            self._parser = parser_for(
                self.path,
                self._unparsed,
                whole=True,
            )
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
    def runs(self) -> int:
        return self._runs.count

    def notes(self) -> list[str]:
        """What a person should know about the file: damage, copies, replacements."""
        notes: list[str] = []
        if self._parser is None and self._blank:
            notes.append("so far it has nothing but blanks and NUL bytes")
        if self._parser is not None:
            notes += self._parser.warnings.first
            more = self._parser.warnings.count - len(self._parser.warnings.first)
            notes += [f"and {some(more, 'more such line')}"] if more > 0 else []
            notes += self._parser.notes()
        if self._runs.copies:
            notes.append(
                f"{some(self._runs.copies, 'row')} repeated an earlier row exactly and counted once"
            )
        if self.restarts:
            notes.append(f"the file was replaced {some(self.restarts, 'time')}; the newest counts")
        return notes

    def _begin(self) -> list[Row]:
        if self._parser is None:
            return []
        head, self._unparsed = self._unparsed, b""
        return self._placed(self._parser.feed(head))

    def _placed(self, rows: list[Row]) -> list[Row]:
        return [placed for row in rows for placed in self._runs.feed(row)]


def read_whole(path: Path) -> tuple[LogReader, list[Row]]:
    """The reader and all rows of a log that no longer grows. Raises UsageError when it cannot be
    read."""
    reader = LogReader(path)
    rows = reader.read_more()
    while reader.behind:
        rows += reader.read_more()
    return reader, rows + reader.finish()
