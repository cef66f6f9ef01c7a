"""What a look after a look tells of rows, with a clock that is moved by hand."""

import hashlib
import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from harness.clock import ManualClock, iso
from harness.runs.run_tail import RunRows, RunTail


class SetClock(ManualClock):
    """A clock whose wall time a person can set."""

    ahead = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead)


class ToolContext:
    """A run's metrics.jsonl and the run_tail that looks at it."""

    def __init__(self, folder: Path) -> None:
        self.clock, self.path = SetClock(), folder / "metrics.jsonl"
        rows = RunRows(
            self.path, run="exp-0001/run-01", token_sha256=hashlib.sha256(b"t").hexdigest()
        )
        self.rows = rows
        self.run_tail = RunTail(rows, self.clock, self.clock.now())
        self.write("start", token="t")

    def write(self, event: str = "epoch", ago: float = 0.0, **more: object) -> None:
        at = iso(self.clock.now() - timedelta(seconds=ago))
        with self.path.open("a") as stream:
            stream.write(
                json.dumps({"t": at, "event": event, "run": "exp-0001/run-01", **more}) + "\n"
            )

    def look(self, seconds: float = 10.0) -> None:
        self.clock.sleep(seconds)
        for _ in self.run_tail.look():
            pass

    def codes(self) -> list[str]:
        return [found.code for found in self.run_tail.findings()]


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    made = ToolContext(tmp_path)
    made.look()
    return made


def test_rows_that_come_as_they_are_written(context: ToolContext) -> None:
    for _ in range(5):
        context.write()
        context.look()
    assert context.codes() == []


def test_a_look_that_comes_late_accuses_no_row(context: ToolContext) -> None:
    """The supervisor was held up for an hour; the rows of that hour all came meanwhile."""
    context.clock.sleep(3600)
    for ago in (3000, 2000, 1000):
        context.write(ago=ago)
    context.look()
    assert context.codes() == []


def test_one_row_that_a_stalled_disk_held_up_and_two_that_it_cannot_have(
    context: ToolContext,
) -> None:
    context.write(ago=60)
    context.look()
    assert context.codes() == []
    context.write(ago=50)
    context.look()
    (told,) = context.run_tail.findings()
    assert (told.code, told.message.startswith("2 rows of exp-0001/run-01")) == (
        "metrics_out_of_time",
        True,
    )


def test_a_clock_that_was_set_and_set_back_is_said_and_nothing_is_judged(
    context: ToolContext,
) -> None:
    for ahead in (-3600.0, 3600.0, 0.0):
        context.clock.ahead = ahead
        context.write()
        context.write()
        context.look()
    assert context.codes() == ["clock_set"]


def test_a_ledger_that_is_ahead_of_the_clock_is_said_and_the_supervisors_clock_judges(
    context: ToolContext,
) -> None:
    later = context.clock.now() + timedelta(days=365)
    context.run_tail = RunTail(context.rows, context.clock, later)
    context.write()
    context.look()
    (told,) = context.run_tail.findings()
    assert (told.code, "31536000 s later than the clock" in told.message) == ("clock_set", True)
    context.write(ago=60)
    context.write(ago=50)
    context.look()
    assert context.codes() == ["metrics_out_of_time"]


def test_rows_removed_shortened_or_deleted_as_a_whole(context: ToolContext) -> None:
    context.write(loss=9.5)
    context.look()
    whole = context.path.read_text()
    context.path.write_text(whole.replace("9.5", "0.5"))
    assert context.codes() == ["metrics_rewritten"]
    context.path.write_text(whole)
    assert context.codes() == []  # what was read stands there again
    context.path.unlink()
    assert context.codes() == ["metrics_rewritten"]
    context.path.write_text(whole[:40])
    context.look()
    assert context.codes() == ["metrics_rewritten"]


def test_a_run_that_wrote_nothing(tmp_path: Path) -> None:
    context = ToolContext(tmp_path)
    context.path.unlink()
    context.look()
    assert context.codes() == []
