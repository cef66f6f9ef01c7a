"""What is saved goes on to the last bit; what is not whole, not plain or not the same is said,
never guessed."""

import argparse
import json
import math
import random
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from harness.errors import UsageError  # noqa: E402
from harness.run_logger import RunLogger  # noqa: E402
from harness.training import checkpointer  # noqa: E402
from harness.training.checkpointer import Checkpointer  # noqa: E402
from harness.training.loader import ResumableLoader, order_of  # noqa: E402
from harness.training.training_state import load, plain  # noqa: E402
from tests.metrics_rows import read_rows  # noqa: E402  a library may be missing
from tests.training.torch_loop import GOAL, Rows, parts, train  # noqa: E402


class StopHere(Exception):
    pass


def log_in(folder: Path) -> RunLogger:
    return RunLogger(run_dir=folder, experiment="exp-0001", run="run-01", token="t", seed=7)


def stopping(at, seen):
    def told(step, rows):
        seen.append((step, rows))
        if step == at:
            raise StopHere

    return told


def values(folder):
    rows = read_rows(folder / "metrics.jsonl").effective
    return [
        (row["epoch"], row["step"], row["metrics"], row["learning_rate"])
        for row in rows
        if row["event"] == "epoch"
    ]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder, seen = tmp_path_factory.mktemp("unbroken"), []
    return train(log_in(folder), epochs=3, on_step=stopping(0, seen)), seen, values(folder)


@pytest.mark.parametrize("in_steps", [0, 2])
@pytest.mark.parametrize("stop", range(1, 16))
def test_case_21_stopped_after_any_step_it_is_the_unbroken_run(tmp_path, unbroken, stop, in_steps):
    digest, order, rows = unbroken
    before, after = [], []
    with pytest.raises(StopHere):
        train(log_in(tmp_path), epochs=3, in_steps=in_steps, on_step=stopping(stop, before))
    assert (
        train(log_in(tmp_path), epochs=3, in_steps=in_steps, on_step=stopping(0, after)) == digest
    )
    first = after[0][0] if after else 16
    assert [item for item in before if item[0] < first] + after == order
    assert values(tmp_path) == rows


def test_the_orders_of_epochs_differ_and_are_whole():
    orders = [order_of(50, seed=3, epoch=epoch) for epoch in range(4)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len({tuple(order) for order in orders}) == 4
    assert order_of(50, seed=4, epoch=0) != orders[0]


def test_case_21_with_workers_the_order_is_the_same():
    def rows(workers):
        return [
            batch[0].tolist()
            for batch in ResumableLoader(Rows(10), batch_size=3, seed=1, num_workers=workers)
        ]

    assert rows(0) == rows(1)


def saved_once(folder, **changes):
    held = {**parts(10, 2, 7), **changes}
    keeper = Checkpointer(log_in(folder), **held, goal=GOAL)
    keeper.save(0)
    return keeper, held


def resumes(folder):
    rows = read_rows(folder / "metrics.jsonl").rows
    return [(row["exact"], row["missing"]) for row in rows if row["event"] == "resume"]


@pytest.mark.parametrize("missing", ["optimizer", "scheduler", "loader"])
def test_case_22_a_part_that_was_not_saved_is_named(tmp_path, missing):
    saved_once(tmp_path, **{missing: None})
    log = log_in(tmp_path)
    with pytest.warns(UserWarning, match=f"not exactly: {missing}"):
        at = Checkpointer(log, **parts(10, 2, 7), goal=GOAL).resume()
    assert (at.exact, at.missing) == (False, (missing,))
    log.start(2, resumed_at=at.epoch)
    assert resumes(tmp_path) == [(False, [missing])]


def test_an_exact_resume_is_a_row_too_and_sums_on_a_gpu_are_not_exact_by_themselves(
    tmp_path, monkeypatch
):
    saved_once(tmp_path)
    for on_gpu, exact in ((False, True), (True, False)):
        monkeypatch.setattr(checkpointer, "_on_gpu", lambda model, here=on_gpu: here)
        log = log_in(tmp_path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert Checkpointer(log, **parts(10, 2, 7), goal=GOAL).resume().exact is exact
        log.start(2, resumed_at=1)
    gpu = "order of sums on the GPU (torch.use_deterministic_algorithms is off)"
    assert resumes(tmp_path) == [(True, []), (False, [gpu])]


def test_case_22_an_empty_optimizer_and_parts_that_nobody_takes_are_named(tmp_path):
    class Empty:
        def state_dict(self):
            return {}

    saved_once(tmp_path, optimizer=Empty())
    held = parts(10, 2, 7) | {"scheduler": None}
    with pytest.warns(UserWarning, match="optimizer, scheduler"):
        at = Checkpointer(log_in(tmp_path), **held, goal=GOAL).resume()
    assert at.missing == ("optimizer", "scheduler (saved, not used here)")


def test_random_numbers_and_a_scaler_come_back(tmp_path):
    more = {"augment": np.random.default_rng(5), "torch": torch.Generator().manual_seed(9)}
    scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
    scaler.scale(torch.ones(1))
    keeper = Checkpointer(log_in(tmp_path), model=torch.nn.Linear(1, 1), scaler=scaler, more=more)
    random.gauss(0, 1)
    np.random.standard_normal()  # both hold a second normal number now
    keeper.save(0)

    def drawn(generators):
        numbers = [random.gauss(0, 1), np.random.standard_normal(), torch.rand(1).item()]
        return [
            *numbers,
            generators["augment"].random(),
            torch.rand(1, generator=generators["torch"]).item(),
        ]

    expected = drawn(more)
    other = {"augment": np.random.default_rng(0), "torch": torch.Generator()}
    again = torch.amp.GradScaler("cpu")
    at = Checkpointer(
        log_in(tmp_path), model=torch.nn.Linear(1, 1), scaler=again, more=other
    ).resume()
    assert at.exact
    assert drawn(other) == expected
    assert again.state_dict()["scale"] == 512.0


def test_case_22_a_file_from_another_save_is_not_mixed_in(tmp_path):
    keeper, _ = saved_once(tmp_path)
    keeper.step = 4
    keeper.save(1, kept=True)
    folders = [tmp_path / "checkpoints" / f"epoch-000{epoch}" for epoch in (1, 0)]
    assert not folders[1].exists()
    keeper.save(2)
    (tmp_path / "checkpoints/epoch-0002/training.pt").write_bytes(
        (folders[0] / "training.pt").read_bytes()
    )
    with pytest.warns(UserWarning, match="epoch-0002 is passed over: training.pt"):
        at = Checkpointer(log_in(tmp_path), **parts(10, 2, 7), goal=GOAL).resume()
    assert (at.epoch, at.step) == (2, 4)


def test_the_data_of_another_run_is_refused(tmp_path):
    saved_once(tmp_path)
    with pytest.raises(UsageError, match="batch_size 2, here 5") as raised:
        Checkpointer(log_in(tmp_path), **parts(10, 5, 7), goal=GOAL).resume()
    assert raised.value.code == "data_order_differs"


def pointed(root, pointer):
    """The checkpoint that a pointer names, which must be whole."""
    name = (root / pointer).read_text().strip()
    assert (root / name / "COMPLETE").is_file()
    return name


def names(folder):
    return sorted(path.name for path in (folder / "checkpoints").iterdir() if path.is_dir())


def test_retention_keeps_due_best_and_newest(tmp_path):
    keeper = Checkpointer(log_in(tmp_path), **parts(10, 2, 7), every=4, goal=GOAL)
    for epoch, value in enumerate([3.0, 2.0, 5.0, 6.0, 7.0, 1.0, 0.5, math.nan, 9.0]):
        keeper.after_epoch(epoch, None, value=value)
    assert names(tmp_path) == ["epoch-0003", "epoch-0006", "epoch-0007"]
    assert keeper.finish() == tmp_path / "checkpoints/epoch-0006/model.pt"
    assert names(tmp_path) == ["epoch-0003", "epoch-0006", "epoch-0007", "epoch-0008"]
    assert pointed(tmp_path / "checkpoints", "best") == "epoch-0006"
    final = [row for row in read_rows(tmp_path / "metrics.jsonl").rows if row.get("final")]
    assert [(row["path"], row["epoch"]) for row in final] == [
        ("checkpoints/epoch-0006/model.pt", 6)
    ]


def test_case_24_all_nan_has_no_best_and_the_newest_is_scored(tmp_path):
    keeper = Checkpointer(log_in(tmp_path), **parts(10, 2, 7), every=2, goal=GOAL)
    for epoch in range(4):
        keeper.after_epoch(epoch, 4, value=math.nan)
    assert keeper.best_value() is None
    assert not (tmp_path / "checkpoints/best").exists()
    assert keeper.finish() == tmp_path / "checkpoints/epoch-0003/model.pt"


def test_the_best_is_known_again_after_a_resume(tmp_path):
    keeper = Checkpointer(log_in(tmp_path), **parts(10, 2, 7), every=9, goal=GOAL)
    keeper.after_epoch(0, None, value=1.0)
    keeper.save(1)
    again = Checkpointer(log_in(tmp_path), **parts(10, 2, 7), every=9, goal=GOAL)
    again.resume()
    assert again.best_value() == 1.0
    assert not again.after_epoch(2, None, value=2.0)
    assert names(tmp_path) == ["epoch-0000", "epoch-0001"]


def test_case_26_what_is_no_checkpoint_is_set_aside_and_its_name_is_free(tmp_path):
    saved_once(tmp_path)
    root = tmp_path / "checkpoints"
    (root / "epoch-0003").mkdir()
    (root / "epoch-0003/model.pt").write_bytes(b" " * 10)
    (root / "epoch-0004.partial").mkdir()
    (root / "mine").mkdir()
    (root / "latest").write_text("epoch-0003\n")
    again = Checkpointer(log_in(tmp_path), **parts(10, 2, 7), goal=GOAL)
    assert again.resume().epoch == 1
    assert names(tmp_path) == ["epoch-0000", "epoch-0003.incomplete-1", "mine"]
    assert pointed(root, "latest") == "epoch-0000"
    again.save(3)
    assert pointed(root, "latest") == "epoch-0003"
    assert Checkpointer(log_in(tmp_path), **parts(10, 2, 7), goal=GOAL).resume().epoch == 4
    assert "epoch-0003.incomplete-1" in names(tmp_path)


def test_the_same_epoch_again_replaces_the_old_one(tmp_path):
    keeper, _ = saved_once(tmp_path)
    keeper.step = 3
    keeper.save(0)
    root = tmp_path / "checkpoints"
    assert names(tmp_path) == ["epoch-0000"]
    (root / "epoch-0000").rename(root / "epoch-0000.old")  # killed between the two renames
    assert Checkpointer(log_in(tmp_path), **parts(10, 2, 7), goal=GOAL).resume().step == 3
    assert names(tmp_path) == ["epoch-0000"]


FULL = """
import resource, sys
from pathlib import Path
from tests.training.test_checkpointer import Checkpointer, GOAL, log_in, parts
from harness.errors import RunError
keeper = Checkpointer(log_in(Path(sys.argv[1])), **parts(10, 2, 7, width=4000), goal=GOAL)
keeper.save(0)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
try:
    keeper.save(1)
except RunError as error:
    print(error.code, error.message)
"""


def test_case_26_a_full_disk_leaves_the_old_one(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path.cwd(),
    )
    assert done.stdout.startswith(
        "checkpoint_not_saved The checkpoint epoch-0001 could not be saved"
    ), done.stderr
    assert names(tmp_path) == ["epoch-0000"]
    assert pointed(tmp_path / "checkpoints", "latest") == "epoch-0000"
    assert (
        Checkpointer(log_in(tmp_path), **parts(10, 2, 7, width=4000), goal=GOAL).resume().epoch
        == 1
    )


@pytest.mark.parametrize("name", ["model.pt", "training.pt"])
def test_case_28_saves_hold_tensors_and_plain_types_only(tmp_path, name):
    saved_once(tmp_path)
    path = tmp_path / "checkpoints/epoch-0000" / name
    assert torch.load(path, weights_only=True) is not None


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Path("x"), "PosixPath"),
        (argparse.Namespace(a=1), "Namespace"),
        ({1, 2}, "builtins.set"),
        (Rows(2), "Rows"),
    ],
)
def test_case_28_other_types_are_refused_by_name(tmp_path, value, told):
    keeper, _ = saved_once(tmp_path)
    with pytest.raises(UsageError, match=told) as raised:
        keeper.save(1, extra={"best": np.float64(0.5), "args": [value]})
    assert raised.value.code == "checkpoint_not_plain"
    assert "extra.args[0]" in raised.value.message
    assert names(tmp_path) == ["epoch-0000"]


def test_numpy_values_become_plain():
    made = plain(
        {"loss": np.float64(0.5), "n": np.int64(3), "a": np.arange(3), 1: (True, None)}, "extra"
    )
    assert (
        json.dumps({**made, "a": made["a"].tolist()})
        == '{"loss": 0.5, "n": 3, "a": [0, 1, 2], "1": [true, null]}'
    )


@pytest.mark.parametrize(
    "content", [{"rng": np.random.get_state()}, {"path": Path("x")}, argparse.Namespace(a=1)]
)
def test_case_28_a_foreign_file_is_refused_and_nothing_in_it_is_run(tmp_path, content):
    torch.save(content, tmp_path / "foreign.pt")
    with pytest.raises(UsageError, match="does not load as tensors and plain types") as raised:
        load(tmp_path / "foreign.pt")
    assert any(name in raised.value.message for name in ("numpy", "pathlib", "argparse")), (
        raised.value.message
    )


def test_a_run_without_checkpoints_starts_at_the_first_epoch(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        at = Checkpointer(log_in(tmp_path), **parts(10, 2, 7), goal=GOAL).resume()
    assert (at.resumed, at.epoch, at.step, at.exact) == (False, 0, 0, True)


def test_a_checkpoint_that_nobody_was_told_of_is_told_once(tmp_path):
    log = log_in(tmp_path)
    keeper = Checkpointer(log, **parts(10, 2, 7), every=1, goal=GOAL)
    keeper.after_epoch(0, 3, value=1.0)
    path = tmp_path / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for told in (lines[:-1], lines):  # killed before the row, and after it
        path.write_bytes(b"".join(told))
        again = Checkpointer(log_in(tmp_path), **parts(10, 2, 7), every=1, goal=GOAL)
        again.resume()
        again.finish()
        rows = [
            row
            for row in read_rows(path).rows
            if row["event"] == "checkpoint" and not row["final"]
        ]
        assert [row["path"] for row in rows] == ["checkpoints/epoch-0000/model.pt"]
