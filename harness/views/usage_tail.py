"""Follows resources.jsonl of one run. The run may write to it too, so no link is followed."""

from pathlib import Path

from harness.artifacts.jsonl import LineFeed, parse_line
from harness.artifacts.resources import Summary, Usage
from harness.foreign.reader import ByteTail

_MOST_BYTES = 1 << 20
"""A look at a run of a week is no more."""


class UsageTail:
    def __init__(self, path: Path) -> None:
        self._tail = ByteTail(path, follow=False)
        self._begin()

    def read(self) -> Summary:
        """Of all lines so far."""
        before = self._tail.restarts
        data = self._tail.read(_MOST_BYTES)
        if self._tail.restarts != before:
            self._begin()
        for line in self._lines.feed(data):
            for row in parse_line(line).rows:
                self._usage.add(row)
        return self._usage.summary()

    def _begin(self) -> None:
        self._lines, self._usage = LineFeed(), Usage()
