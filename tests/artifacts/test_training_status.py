"""training_status.json is read with its numbers restored, and a damaged one is named, never read as
empty.

`case_NN` in a name is the number of a reported case: a file or log of a real project that an
earlier tool misread. Where its input was kept, it is in tests/artifacts/inputs/case-NN.
"""

import math
from pathlib import Path

import pytest

from harness.artifacts.training_status import read_status
from harness.clock import ManualClock
from harness.errors import UsageError
from harness.run_logger import RunLogger


def test_w3_what_is_not_finite_is_written_and_read_again(tmp_path: Path) -> None:
    log = RunLogger(
        run_dir=tmp_path,
        experiment="exp-0001",
        run="run-01",
        token="t",
        seed=3,
        clock=ManualClock(),
    )
    log.start(total_epochs=5)
    log.epoch(2, {"loss": math.nan, "up": -math.inf}, learning_rate=math.inf)
    log.end()
    status = read_status(tmp_path / "training_status.json")
    assert status is not None
    assert (status.run, status.status, status.epoch, status.total_epochs) == (
        "exp-0001/run-01",
        "completed",
        2,
        5,
    )
    assert math.isnan(status.metrics["loss"])
    assert (status.metrics["up"], status.learning_rate) == (-math.inf, math.inf)
    assert (status.rows, status.seed, status.non_finite) == (3, 3, 2)


def test_no_file_is_no_status(tmp_path: Path) -> None:
    assert read_status(tmp_path / "training_status.json") is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"run": "exp-0001/run-01", "sta',
        b"[]",
        b'{"status": "running", "current_steps": 2000}',
        b'{"run": "r", "status": "running", "rows": "many"}',
        b'{"run": "r", "status": "running", "metrics": []}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_case_35_a_damaged_status_is_named(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "training_status.json"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=r"training_status\.json is damaged") as caught:
        read_status(path)
    assert caught.value.code == "status_damaged"
    assert path.read_bytes() == data
