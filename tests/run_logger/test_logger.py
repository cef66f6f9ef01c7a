"""The run logger: its rows, its status file, what it refuses, and what it costs to import."""

import json
import math
import os
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from harness.clock import ManualClock
from harness.errors import RefusedError, UsageError
from harness.run_logger import RunLogger
from tests.metrics_rows import read_rows

REPOSITORY = Path(__file__).parents[2]


def environ(run_dir: Path, **more: str) -> dict[str, str]:
    return {
        "HARNESS_RUN_DIR": str(run_dir),
        "HARNESS_EXPERIMENT": "exp-0001",
        "HARNESS_RUN": "run-01",
        "HARNESS_RUN_TOKEN": "secret-token",
        "HARNESS_SEED": "7",
        **more,
    }


def logger(run_dir: Path, clock: ManualClock | None = None, **more: str) -> RunLogger:
    return RunLogger.from_environment(environ(run_dir, **more), clock or ManualClock())


def lines(run_dir: Path) -> list[dict]:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not strict JSON")

    text = (run_dir / "metrics.jsonl").read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return [json.loads(line, parse_constant=refuse) for line in text[:-1].split("\n")]


def status(run_dir: Path) -> dict:
    return json.loads((run_dir / "training_status.json").read_text())


def test_a_whole_run(tmp_path: Path) -> None:
    log = logger(tmp_path, HARNESS_ATTEMPT="2", HARNESS_CHECKPOINT_EVERY="10")
    log.start(total_epochs=2, config={"width": 3, "where": Path("a")})
    log.epoch(0, {"loss": 1.5}, step=10, learning_rate=0.1, seconds=2)
    weights = log.checkpoint_dir / "w.pt"
    weights.write_bytes(b"w")
    log.checkpoint_saved(weights, epoch=0, final=True)
    log.end()
    start, epoch, checkpoint, end = lines(tmp_path)
    assert start["event"] == "start"
    assert start["token"] == "secret-token"
    assert start["config"] == {"width": 3, "where": "a"}
    assert {row["run"] for row in (start, epoch, checkpoint, end)} == {"exp-0001/run-01"}
    assert {row["attempt"] for row in (start, epoch, checkpoint, end)} == {2}
    assert epoch["t"] == "2026-01-01T00:00:00.000Z"
    assert (
        epoch["epoch"],
        epoch["step"],
        epoch["metrics"],
        epoch["learning_rate"],
        epoch["seconds"],
    ) == (
        0,
        10,
        {"loss": 1.5},
        0.1,
        2,
    )
    assert "token" not in epoch
    assert (checkpoint["path"], checkpoint["epoch"], checkpoint["final"]) == (
        "checkpoints/w.pt",
        0,
        True,
    )
    assert end["status"] == "completed"
    assert (log.seed, log.experiment, log.run, log.attempt, log.checkpoint_every) == (
        7,
        "exp-0001",
        "run-01",
        2,
        10,
    )


def test_w5_nan_is_strict_json(tmp_path: Path) -> None:
    log = logger(tmp_path)
    log.epoch(
        0,
        {"loss": math.nan, "up": math.inf, "down": -math.inf, "np": np.float32("nan")},
        learning_rate=math.nan,
    )
    log.end()
    assert lines(tmp_path)[1]["metrics"] == {
        "loss": "NaN",
        "up": "Infinity",
        "down": "-Infinity",
        "np": "NaN",
    }
    assert status(tmp_path)["metrics"]["loss"] == "NaN"
    assert (status(tmp_path)["non_finite"], status(tmp_path)["first_non_finite_epoch"]) == (4, 0)
    json.dumps(status(tmp_path), allow_nan=False)


def test_w5_scalars_of_any_library_are_numbers_not_text(tmp_path: Path) -> None:
    class Tensor:
        def __float__(self) -> float:
            return 0.5

        def __repr__(self) -> str:
            return "tensor(0.5)"

    log = logger(tmp_path)
    log.epoch(
        0,
        {
            "a": Tensor(),
            "b": np.float64(0.25),
            "c": np.int64(3),
            "d": Decimal("0.5"),
            "f": 2**70,
            "g": 4,
        },
    )
    assert lines(tmp_path)[1]["metrics"] == {
        "a": 0.5,
        "b": 0.25,
        "c": 3.0,
        "d": 0.5,
        "f": 2.0**70,
        "g": 4,
    }


@pytest.mark.parametrize(
    "value",
    ["0.5", None, [1.0], {}, b"1", 1j, 10**400, np.zeros(2), True, np.True_, np.array([False])],
)
def test_a_metric_that_is_no_number_is_refused_by_name(tmp_path: Path, value: object) -> None:
    log = logger(tmp_path)
    with pytest.raises(UsageError, match="'val/loss'") as caught:
        log.epoch(0, {"val/loss": value})
    assert caught.value.code == "metric_not_a_number"
    assert not (tmp_path / "metrics.jsonl").exists()


@pytest.mark.parametrize("epoch", [-1, 1.5, "1", None])
def test_an_epoch_that_is_no_whole_number_is_refused(tmp_path: Path, epoch: object) -> None:
    with pytest.raises(UsageError, match="whole number from 0"):
        logger(tmp_path).epoch(epoch, {"loss": 1.0})  # type: ignore[arg-type]


def test_further_numbers_may_not_take_the_loggers_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'event'"):
        logger(tmp_path).epoch(0, {}, event=1)


def test_a_truth_value_says_what_to_log_instead(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'early_stop' is True \(bool\)") as caught:
        logger(tmp_path).epoch(0, {"early_stop": True})
    assert "log 1.0 or 0.0" in caught.value.hint


def test_with_a_part_of_the_supervisors_variables_it_refuses() -> None:
    with pytest.raises(RefusedError) as caught:
        RunLogger.from_environment(
            {"HARNESS_EXPERIMENT": "exp-0004"}, command=["python", "-m", "net.train"]
        )
    assert caught.value.code == "not_supervised"
    assert "HARNESS_RUN_TOKEN" in caught.value.message
    assert "`harness train exp-0004 -- python -m net.train`" in caught.value.hint


def test_status_is_written_once_a_second_and_at_state_changes(tmp_path: Path) -> None:
    clock = ManualClock()
    log = logger(tmp_path, clock)
    log.start(total_epochs=100)
    seen = []
    for epoch in range(20):
        log.epoch(epoch, {"loss": 1.0})
        seen.append(status(tmp_path)["epoch"])
        clock.sleep(0.25)
    assert sorted({item for item in seen if item is not None}) == [4, 8, 12, 16]
    (log.checkpoint_dir / "w").mkdir()
    log.checkpoint_saved(log.checkpoint_dir / "w")
    assert status(tmp_path)["epoch"] == 19
    log.epoch(20, {"loss": 0.5})
    log.end()
    assert (status(tmp_path)["epoch"], status(tmp_path)["status"]) == (20, "completed")
    assert not list(tmp_path.glob(".training_status*"))


def test_w5_a_checkpoint_shows_at_once_and_the_end_keeps_what_was_known(tmp_path: Path) -> None:
    log = logger(tmp_path)
    log.start(total_epochs=9)
    log.epoch(0, {"loss": 1.0}, learning_rate=0.25)
    (log.checkpoint_dir / "w").write_bytes(b"1")
    log.checkpoint_saved(log.checkpoint_dir / "w", epoch=0)
    assert status(tmp_path)["checkpoint"] == {"path": "checkpoints/w", "epoch": 0, "final": False}
    log.epoch(1, {"loss": 1.0})
    log.end()
    assert (
        status(tmp_path)["total_epochs"],
        status(tmp_path)["learning_rate"],
        status(tmp_path)["checkpoints"],
    ) == (
        9,
        0.25,
        1,
    )


def test_status_stays_small(tmp_path: Path) -> None:
    log = logger(tmp_path)
    log.epoch(0, {f"m{index}": 1.0 for index in range(10_000)})
    log.end()
    assert (tmp_path / "training_status.json").stat().st_size < 10_000
    assert (len(status(tmp_path)["metrics"]), status(tmp_path)["metrics_left_out"]) == (200, 9_800)
    assert len(lines(tmp_path)[1]["metrics"]) == 10_000


def test_w5_a_resume_appends_an_attempt_row_and_wipes_nothing(tmp_path: Path) -> None:
    first = logger(tmp_path)
    first.start(total_epochs=6)
    (first.checkpoint_dir / "w").write_bytes(b"1")
    for epoch in range(4):
        first.epoch(epoch, {"loss": 10.0 + epoch})
    first.checkpoint_saved(first.checkpoint_dir / "w", epoch=1)
    again = logger(tmp_path)
    again.start(total_epochs=6, resumed_at=2)
    for epoch in range(2, 6):
        again.epoch(epoch, {"loss": float(epoch)})
    again.end()
    attempt = lines(tmp_path)[6]
    assert (attempt["event"], attempt["attempt"], attempt["resumed_at"]) == ("attempt", 2, 2)
    assert status(tmp_path)["checkpoints"] == 1
    assert status(tmp_path)["resumed"] == 1
    metrics = read_rows(tmp_path / "metrics.jsonl")
    losses = [row["metrics"]["loss"] for row in metrics.effective if row["event"] == "epoch"]
    assert losses == [10.0, 11.0, 2.0, 3.0, 4.0, 5.0]
    assert metrics.notes == ["resumed at 2"]


def test_a_resume_without_a_stated_epoch_is_read_from_the_rows(tmp_path: Path) -> None:
    for first in (0, 3):
        log = logger(tmp_path)
        log.start()
        for epoch in range(first, 5):
            log.epoch(epoch, {"loss": first + epoch / 10})
    rows = [
        row for row in read_rows(tmp_path / "metrics.jsonl").effective if row["event"] == "epoch"
    ]
    assert [row["metrics"]["loss"] for row in rows] == [0.0, 0.1, 0.2, 3.3, 3.4]


def test_case_13_a_row_starts_on_a_fresh_line_after_a_torn_one(tmp_path: Path) -> None:
    log = logger(tmp_path)
    log.epoch(0, {"loss": 1.0})
    with (tmp_path / "metrics.jsonl").open("ab") as stream:
        stream.write(b'{"t":"x","event":"epoch","epoch":1,"metr')
    again = logger(tmp_path)
    again.start()
    again.epoch(1, {"loss": 0.5})
    metrics = read_rows(tmp_path / "metrics.jsonl")
    assert [row["metrics"]["loss"] for row in metrics.effective if row["event"] == "epoch"] == [
        1.0,
        0.5,
    ]
    assert len(metrics.warnings) == 1


def test_case_35_a_damaged_status_is_set_aside_and_never_read_as_empty(tmp_path: Path) -> None:
    log = logger(tmp_path)
    log.start()
    (tmp_path / "training_status.json").write_bytes(b'{"run": "exp-0001/ru')
    again = logger(tmp_path)
    again.start()
    assert (tmp_path / "training_status.json.damaged-1").read_bytes() == b'{"run": "exp-0001/ru'
    assert status(tmp_path)["status"] == "running"


def test_a_checkpoint_must_lie_in_the_runs_folder(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    log = logger(run_dir)
    log.start()
    outside = tmp_path / "w"
    outside.write_bytes(b"1")
    (log.checkpoint_dir / "link").symlink_to(outside)
    for path in (outside, log.checkpoint_dir / "link", log.checkpoint_dir / "missing", run_dir):
        with pytest.raises(UsageError) as caught:
            log.checkpoint_saved(path)
        assert caught.value.code == "checkpoint_outside"
    assert len(lines(run_dir)) == 1


def test_an_exception_ends_the_run_as_failed(tmp_path: Path) -> None:
    def train() -> None:
        with logger(tmp_path) as log:
            log.epoch(0, {"loss": 1.0})
            raise ZeroDivisionError("division by zero")

    with pytest.raises(ZeroDivisionError):
        train()
    assert (lines(tmp_path)[-1]["status"], status(tmp_path)["status"]) == ("failed", "failed")
    assert lines(tmp_path)[-1]["error"].startswith("ZeroDivisionError")


def test_after_the_end_nothing_is_logged(tmp_path: Path) -> None:
    with logger(tmp_path) as log:
        log.epoch(0, {"loss": 1.0})
        log.end()
        with pytest.raises(UsageError, match="ended already"):
            log.epoch(1, {"loss": 1.0})
    assert [row["event"] for row in lines(tmp_path)] == ["start", "epoch", "end"]


def test_other_ranks_and_forked_children_write_nothing(tmp_path: Path) -> None:
    with logger(tmp_path / "rank", RANK="1") as log:
        log.start()
        log.epoch(0, {"loss": 1.0})
    assert not (tmp_path / "rank").exists()
    code = (
        "import os\nfrom harness.run_logger import RunLogger\nlog = RunLogger.from_environment()\n"
        "log.start()\nchild = os.fork()\nwith log:\n    log.epoch(child and 1, {'loss': 1})\n"
        "if child:\n    os.waitpid(child, 0)\n"
    )
    subprocess.run(
        [sys.executable, "-c", code], env=environ(tmp_path), cwd=REPOSITORY, check=True, timeout=60
    )
    assert [row.get("epoch") for row in lines(tmp_path)] == [None, 1, None]


def leave(tmp_path: Path, code: int | None) -> None:
    with logger(tmp_path) as log:
        log.epoch(0, {"loss": 1.0})
        sys.exit(code)


@pytest.mark.parametrize(
    ("code", "status_now", "error"),
    [(0, "completed", None), (None, "completed", None), (3, "failed", "SystemExit: 3")],
)
def test_leaving_with_exit_code_0_is_an_end(
    tmp_path: Path, code: int | None, status_now: str, error: str | None
) -> None:
    with pytest.raises(SystemExit):
        leave(tmp_path, code)
    assert (lines(tmp_path)[-1]["status"], status(tmp_path)["status"]) == (status_now,) * 2
    assert lines(tmp_path)[-1].get("error") == error


def test_the_folder_of_checkpoints_is_there_from_the_start(tmp_path: Path) -> None:
    assert logger(tmp_path).checkpoint_dir.is_dir()
    assert logger(tmp_path, RANK="1").checkpoint_dir.is_dir()


def test_threads_do_not_mix_rows(tmp_path: Path) -> None:
    log = logger(tmp_path)
    log.start()

    def work(offset: int) -> None:
        for epoch in range(100):
            log.epoch(offset + epoch, {"loss": 1.0, "pad": 1e300})

    threads = [threading.Thread(target=work, args=(100 * index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.end()
    assert sorted(row["epoch"] for row in lines(tmp_path)[1:-1]) == list(range(400))
    assert status(tmp_path)["rows"] == 402


def test_a_short_write_leaves_no_glued_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logger(tmp_path)
    log.start()
    write = os.write

    def full_disk(descriptor: int, data: bytes) -> int:
        write(descriptor, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full_disk)
    with pytest.raises(OSError, match="No space left"):
        log.epoch(0, {"loss": 1.0})
    monkeypatch.setattr(os, "write", write)
    log.epoch(1, {"loss": 0.5})
    assert [row.get("epoch") for row in read_rows(tmp_path / "metrics.jsonl").rows] == [None, 1]


def test_it_imports_nothing_but_the_standard_library() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); import harness.run_logger;"
        " print(*sorted({name.partition('.')[0] for name in sys.modules} -"
        " set(sys.stdlib_module_names)))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= {"harness", "__main__", "_distutils_hack"}


def test_counters_may_be_numpy_integers(tmp_path: Path) -> None:
    log = logger(tmp_path)
    log.start(total_epochs=np.int64(3))  # type: ignore[arg-type]
    log.epoch(np.int32(1), {"loss": 1.0}, step=np.int64(9))  # type: ignore[arg-type]
    assert [
        (row.get("total_epochs"), row.get("epoch"), row.get("step")) for row in lines(tmp_path)
    ] == [
        (3, None, None),
        (None, 1, 9),
    ]


def test_the_time_of_a_row_follows_the_clock_also_backwards(tmp_path: Path) -> None:
    clock = ManualClock()
    log = logger(tmp_path, clock)
    for seconds in (0.0, 0.25, 0.75, 3_600.0, -1.5, 86_400.0):
        clock.sleep(seconds)
        log.epoch(0, {"loss": 1.0})
    assert [row["t"] for row in lines(tmp_path)[1:]] == [
        "2026-01-01T00:00:00.000Z",
        "2026-01-01T00:00:00.250Z",
        "2026-01-01T00:00:01.000Z",
        "2026-01-01T01:00:01.000Z",
        "2026-01-01T00:59:59.500Z",
        "2026-01-02T00:59:59.500Z",
    ]


def test_a_resume_says_what_it_did_without(tmp_path: Path) -> None:
    given = {
        "run_dir": tmp_path,
        "experiment": "exp-0001",
        "run": "run-01",
        "token": "t",
        "seed": 0,
    }
    with RunLogger(**given) as log:  # type: ignore[arg-type]
        log.start(2)
    again = RunLogger(**given)  # type: ignore[arg-type]
    again.resumed(["optimizer", "scheduler"])
    again.start(2, resumed_at=1)
    again.resumed()
    told = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()][2:]
    assert [row["event"] for row in told] == ["attempt", "resume", "resume"]
    assert [(row["exact"], row["missing"]) for row in told[1:]] == [
        (False, ["optimizer", "scheduler"]),
        (True, []),
    ]


def test_the_config_says_which_of_its_values_nobody_read(tmp_path: Path) -> None:
    said = json.dumps({"lr": 0.1, "width": 64, "model": {"kind": "mlp"}})
    with logger(tmp_path / "some", HARNESS_CONFIG=said) as log:
        assert log.config["lr"] == 0.1
        assert log.config.get("depth", 3) == 3
        assert "model" in log.config
    assert lines(tmp_path / "some")[-1]["unread"] == ["width"]
    with logger(tmp_path / "all", HARNESS_CONFIG=said) as log:
        assert dict(log.config)["model"] == {"kind": "mlp"}
    assert "unread" not in lines(tmp_path / "all")[-1]
    with logger(tmp_path / "none") as log:
        assert (len(log.config), log.config.get("lr")) == (0, None)
    assert "unread" not in lines(tmp_path / "none")[-1]
