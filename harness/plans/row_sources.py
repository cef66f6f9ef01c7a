"""What a row search looks at, and what it did not look at."""

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.files import sha256_bytes


@dataclass(frozen=True, kw_only=True)
class Limits:
    seconds: float = 60.0
    file_bytes: int = 128 << 20
    """Of one file, and of all that is unpacked from it; of a larger text the beginning is read."""
    total_bytes: int = 8 << 30


@dataclass(kw_only=True)
class Missed:
    """What was not looked at: why -> names."""

    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, why: str, name: str) -> None:
        self.names.setdefault(why, []).append(name)


@dataclass(frozen=True, kw_only=True)
class Source:
    """The bytes of a file, of a blob, or of a member of either."""

    name: str
    data: bytes
    blob: str = ""
    """The git object; empty for a file of the project."""
    path: str = ""
    """Relative to the root, or absolute outside it; empty for what is no file."""
    made: bool = False
    """Decoded from something: when nothing can be read in it, that is no news."""


TOO_LARGE = "larger than the limit"
HEAD_ONLY = "larger than the limit, looked at from the beginning only"
TIME_OVER = "the time was over"
NOT_READ = "a format that is not read"
DAMAGED = "damaged or not readable"
LEFT_OUT = "a folder of installed programs, or a link to a folder"


class Looking:
    """One search: its clock, its bounds, and what it missed."""

    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        self.limits, self.missed = limits, Missed()
        self.files = self.blobs = self.bytes = 0
        self._now, self._end = now, now() + limits.seconds
        self._seen: set[str] = set()

    def over(self) -> bool:
        return self._now() > self._end or self.bytes > self.limits.total_bytes

    def left_s(self) -> float:
        return max(1.0, self._end - self._now())

    def new(self, data: bytes) -> bool:
        """Whether these bytes were not looked at before, under any name."""
        key = sha256_bytes(data)
        fresh = key not in self._seen
        self._seen.add(key)
        self.bytes += len(data) if fresh else 0
        return fresh


_CONTROLS = bytes(sorted(set(range(32)) - set(b"\t\n\r\f\b\x1b")))


def is_text(data: bytes) -> bool:
    head = data[:4096]
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return True
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return b"\0" not in head and 50 * controls <= len(head)


def optional(name: str) -> Any:
    """A library that need not be installed; None without it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
