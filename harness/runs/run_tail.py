"""A run's rows as the supervisor saw them come, so that rows made up later do not pass for logged
ones.

The run logger reads the clock and writes the row at once. So a row is there at every look after its
time. The times of looks are the supervisor's: nothing here trusts the training.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.artifacts.metrics_file import Row, Tail, belonging
from harness.artifacts.metrics_notes import SLACK_S, time_of
from harness.artifacts.resume_check import ResumeCheck
from harness.clock import Clock, iso
from harness.domain.findings import CLOCK_SET, Finding
from harness.runs.tellings import Tellings

_CLOCK_S = 1.0
"""How far wall clock and monotonic clock may drift apart before row times prove nothing."""
_LEAST = 2
"""One late row is a disk that stalled between clock and write; the next row reads the clock only
after that write."""


class RunRows:
    """Takes the rows of the run's own run logger, known by name and link token, and keeps what
    decides about the run."""

    def __init__(self, path: Path, *, run: str, token_sha256: str) -> None:
        self.path, self.run, self._token = path, run, token_sha256
        self._start: Row | None = None
        self.count = 0
        self.foreign = 0
        """Rows that are not of this run."""
        self.total_epochs: int | None = None
        self.end: Row | None = None
        self.logged: dict[str, Any] = {}
        """The configuration that training said it had."""
        self.checkpoints = Tellings()
        self.resumes = ResumeCheck()

    @property
    def seen(self) -> bool:
        """Whether the run logger was used at all."""
        return self.count > 0

    def take(self, rows: Iterable[Row]) -> list[Row]:
        """Of `rows`, which follow those taken before, the ones that count."""
        new = list(rows)
        before = [] if self._start is None else [self._start]
        every = belonging([*before, *new], run=self.run, token_sha256=self._token)
        own = [*every][len(before) :]
        self.count += len(own)
        self.foreign += len(new) - len(own)
        for row in own:
            self._note(row)
        return own

    def _note(self, row: Row) -> None:
        self.resumes.take(row)
        event = row.get("event")
        if event in ("start", "attempt"):
            self._start, self.end = self._start or row, None
            said = row.get("config")
            self.logged = said if isinstance(said, dict) else {}
            total = row.get("total_epochs")
            self.total_epochs = total if type(total) is int else self.total_epochs
        elif event == "checkpoint":
            self.checkpoints.take(row)
        elif event == "end":
            self.end = row


class RunTail:
    """Looks at a run's rows again and again. Made before the run is launched.

    `registered`: when the ledger says that it was; never before its newest fact, so later than now
    where the clock was ahead once.
    """

    def __init__(self, rows: RunRows, clock: Clock, registered: datetime) -> None:
        self.rows, self._clock = rows, clock
        self._tail = Tail(rows.path)
        self._begun, self._monotonic = clock.now(), clock.monotonic()
        self._ahead = (registered - self._begun).total_seconds()
        self._before = self._begun
        self._drift = 0.0
        self._late = self._early = 0
        self._example = ""

    def before(self) -> Iterator[list[Row]]:
        """The rows of earlier attempts, whose times were checked then, some at a time. Called
        before the launch."""
        return map(self.rows.take, self._tail.batches())

    def look(self) -> Iterator[list[Row]]:
        """The run's own rows that came since the last look, some at a time, if any."""
        now = self._clock.now()
        passed = self._clock.monotonic() - self._monotonic
        self._drift = max(self._drift, abs((now - self._begun).total_seconds() - passed))
        for batch in self._tail.batches():
            new = self.rows.take(batch)
            self._check_times(new, now)
            yield new
        self._before = now

    def _check_times(self, rows: Iterable[Row], now: datetime) -> None:
        for row in rows:
            at = time_of(row)
            if at is None:
                continue
            if (self._before - at).total_seconds() > SLACK_S:
                self._late += 1
                self._example = (
                    self._example or f"{row['t']}, which was not there at {iso(self._before)}"
                )
            elif (at - now).total_seconds() > SLACK_S:
                self._early += 1
                self._example = self._example or f"{row['t']}, which was there at {iso(now)}"

    def findings(self) -> list[Finding]:
        """Of all looks, the last one taken after the run's processes had ended."""
        name, data = self.rows.run, {"run": self.rows.run}
        findings = []
        if not self._tail.intact():
            findings.append(
                Finding(
                    "metrics_rewritten",
                    f"Rows that {name} had logged are not in its metrics.jsonl any more, or not as"
                    " they were.",
                    "Train again: rows are appended by the run logger and never edited, also not by"
                    " the training code.",
                    data,
                )
            )
        if self._drift > _CLOCK_S:
            message = (
                f"The clock jumped by {self._drift:.0f} s while {name} trained: the times of its"
                " rows say nothing."
            )
            return [*findings, Finding(CLOCK_SET, message, "Nothing to do.", data)]
        wrong = self._early + (self._late if self._late >= _LEAST else 0)
        if wrong and not findings:
            findings.append(
                Finding(
                    "metrics_out_of_time",
                    f"{wrong} rows of {name} do not say when they were written, e.g. one of"
                    f" {self._example}.",
                    "Train again, and call the run logger while it trains: rows cannot be written"
                    " later.",
                    data,
                )
            )
        elif self._ahead > SLACK_S:
            message = (
                f"The ledger's newest fact was {self._ahead:.0f} s later than the clock when {name}"
                " began: the clock was set back, and the times of its rows are not compared with"
                " the ledger's."
            )
            findings.append(Finding(CLOCK_SET, message, "Nothing to do.", data))
        return findings
