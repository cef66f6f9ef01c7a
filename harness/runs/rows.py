"""The rows of one run: those that its own run logger wrote, told by the run's id and its link
token."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.artifacts.metrics_file import Row, belonging


class RunRows:
    """Sees rows as they come and keeps what decides about the run."""

    def __init__(self, path: Path, *, run: str, token_sha256: str) -> None:
        self.path, self.run, self._token = path, run, token_sha256
        self._start: Row | None = None
        self.count = 0
        self.foreign = 0
        """Rows that are not of this run."""
        self.total_epochs: int | None = None
        self.end: Row | None = None
        self.checkpoints: list[Row] = []
        self.resumes: list[Row] = []

    @property
    def seen(self) -> bool:
        """Whether the run logger was used at all."""
        return self.count > 0

    def take(self, rows: Iterable[Row]) -> list[Row]:
        """Of `rows`, which follow those taken before, the ones that count."""
        given = list(rows)
        before = [] if self._start is None else [self._start]
        own = belonging([*before, *given], run=self.run, token_sha256=self._token)[len(before) :]
        self.count += len(own)
        self.foreign += len(given) - len(own)
        for row in own:
            self._note(row)
        return own

    def _note(self, row: dict[str, Any]) -> None:
        event = row.get("event")
        if event in ("start", "attempt"):
            self._start, self.end = self._start or row, None
            total = row.get("total_epochs")
            self.total_epochs = total if type(total) is int else self.total_epochs
        elif event == "checkpoint":
            self.checkpoints.append(row)
        elif event == "resume":
            self.resumes.append(row)
        elif event == "end":
            self.end = row
