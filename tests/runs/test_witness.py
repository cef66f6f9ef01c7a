"""What a look after a look tells of rows, with a clock that is moved by hand."""

import hashlib
import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from harness.clock import ManualClock, iso
from harness.runs.rows import RunRows
from harness.runs.witness import Witness


class SetClock(ManualClock):
    """A clock whose wall time a person can set."""

    ahead = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead)


class Desk:
    """A run's metrics.jsonl and the witness that looks at it."""

    def __init__(self, folder: Path) -> None:
        self.clock, self.path = SetClock(), folder / "metrics.jsonl"
        rows = RunRows(self.path, run="exp-0001/run-01", token_sha256=hashlib.sha256(b"t").hexdigest())
        self.witness = Witness(rows, self.clock)
        self.write("start", token="t")

    def write(self, event: str = "epoch", ago: float = 0.0, **more: object) -> None:
        at = iso(self.clock.now() - timedelta(seconds=ago))
        with self.path.open("a") as stream:
            stream.write(json.dumps({"t": at, "event": event, "run": "exp-0001/run-01", **more}) + "\n")

    def look(self, seconds: float = 10.0) -> None:
        self.clock.sleep(seconds)
        self.witness.look()

    def codes(self) -> list[str]:
        return [found.code for found in self.witness.findings()]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.look()
    return made


def test_rows_that_come_as_they_are_written(desk: Desk) -> None:
    for _ in range(5):
        desk.write()
        desk.look()
    assert desk.codes() == []


def test_a_look_that_comes_late_accuses_no_row(desk: Desk) -> None:
    """The supervisor was held up for an hour; the rows of that hour all came meanwhile."""
    desk.clock.sleep(3600)
    for ago in (3000, 2000, 1000):
        desk.write(ago=ago)
    desk.look()
    assert desk.codes() == []


def test_one_row_that_a_stalled_disk_held_up_and_two_that_it_cannot_have(desk: Desk) -> None:
    desk.write(ago=60)
    desk.look()
    assert desk.codes() == []
    desk.write(ago=50)
    desk.look()
    (told,) = desk.witness.findings()
    assert (told.code, told.message.startswith("2 rows of exp-0001/run-01")) == ("metrics_out_of_time", True)


def test_a_clock_that_was_set_and_set_back_is_said_and_nothing_is_judged(desk: Desk) -> None:
    for ahead in (-3600.0, 3600.0, 0.0):
        desk.clock.ahead = ahead
        desk.write()
        desk.write()
        desk.look()
    assert desk.codes() == ["clock_set"]


def test_rows_removed_shortened_or_deleted_as_a_whole(desk: Desk) -> None:
    desk.write(loss=9.5)
    desk.look()
    whole = desk.path.read_text()
    desk.path.write_text(whole.replace("9.5", "0.5"))
    assert desk.codes() == ["metrics_rewritten"]
    desk.path.write_text(whole)
    assert desk.codes() == []  # what was read stands there again
    desk.path.unlink()
    assert desk.codes() == ["metrics_rewritten"]
    desk.path.write_text(whole[:40])
    desk.look()
    assert desk.codes() == ["metrics_rewritten"]


def test_a_run_that_wrote_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.path.unlink()
    desk.look()
    assert desk.codes() == []
