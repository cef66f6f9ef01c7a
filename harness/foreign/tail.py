"""A growing file by byte offset: each byte is handed out once, a file that was replaced starts
again."""

import os
from pathlib import Path
from typing import BinaryIO

from harness.artifacts.content import open_regular
from harness.errors import NotFoundError, UsageError

_HEAD = 4096


class ByteTail:
    """Costs the same at every look, however large the file is: it compares the first 4 KiB and
    reads what is new."""

    def __init__(self, path: Path, *, follow: bool = True) -> None:
        self.path, self._follow = path, follow
        self.problem: str | None = None
        """Why nothing can be read, in words; None while it can, and while there is no file yet."""
        self.present = False
        self.size = 0
        self.behind = 0
        """Bytes that were there at the last look and are not read yet."""
        self.modified: float | None = None
        """When the file was changed last, Unix seconds."""
        self.replacements = 0
        """How often another file, or a shorter one, stood there; what was read before then counts
        no more."""
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
        found = os.fstat(stream.fileno())
        head = stream.read(_HEAD)
        other = self._inode is not None and (
            found.st_ino != self._inode
            or found.st_size < self._offset
            or not head.startswith(self._head)
        )
        if other:
            self._offset, self._head = 0, b""
            self.replacements += 1
        self._inode, self.modified = found.st_ino, found.st_mtime
        if len(self._head) < _HEAD:
            self._head = head[: min(_HEAD, self._offset + most)]
        stream.seek(self._offset)
        data = stream.read(most)
        self._offset += len(data)
        self.size = found.st_size
        self.behind = max(0, found.st_size - self._offset)
        return data
