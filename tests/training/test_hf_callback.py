"""transformers.Trainer through the callback: NaN is seen, steps or epochs are counted, checkpoints
are told of."""

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from harness.errors import UsageError  # noqa: E402
from harness.run_logger import RunLogger  # noqa: E402
from harness.training.transformers_callback import (  # noqa: E402
    TransformersCallback,
    whole_checkpoint,
)
from tests.metrics_rows import read_rows  # noqa: E402  a library may be missing

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
ROWS = 8


class Line(torch.nn.Module):
    """y = wx; the loss of row `broken` is NaN without any gradient, as a masked batch gives."""

    def __init__(self, broken: int | None = None) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.broken = broken

    def forward(self, x: Any, labels: Any) -> dict[str, Any]:
        loss = ((self.weight * x - labels) ** 2).mean()
        if self.broken is not None and self.training and int(x.max()) >= self.broken:
            loss = loss.detach() * math.nan + 0 * self.weight.sum()
        return {"loss": loss, "logits": self.weight * x}


def data() -> list[dict[str, Any]]:
    return [
        {"x": torch.tensor([float(i)]), "labels": torch.tensor([2.0 * i])} for i in range(ROWS)
    ]


def log_in(folder: Path, **more: Any) -> RunLogger:
    return RunLogger(
        run_dir=folder, experiment="exp-0001", run="run-01", token="t", seed=1, **more
    )


def train(
    log: RunLogger,
    model: Line,
    *,
    resume: Any = None,
    later: bool = False,
    before: tuple[Any, ...] = (),
    **more: Any,
) -> Any:
    options = {
        "output_dir": str(log.checkpoint_dir),
        "num_train_epochs": 2,
        "logging_steps": 1,
        "learning_rate": 1e-3,
    }
    quiet = {
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "dataloader_pin_memory": False,
    }
    arguments = transformers.TrainingArguments(
        **quiet | options | {"per_device_train_batch_size": 2} | more
    )
    callback = TransformersCallback(log)
    trainer = transformers.Trainer(
        model=model,
        args=arguments,
        train_dataset=data(),
        eval_dataset=data(),
        callbacks=[] if later else [*before, callback],
    )
    if later:
        trainer.add_callback(callback)
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("later", [False, True], ids=["given", "added later"])
def test_a_nan_that_the_trainer_would_hide_is_logged(tmp_path: Path, later: bool) -> None:
    with log_in(tmp_path) as log:
        train(log, Line(broken=0), save_strategy="no", later=later)
    losses = [row["metrics"]["loss"] for row in rows(tmp_path) if "loss" in row.get("metrics", {})]
    assert losses == ["NaN"] * 8
    found = read_rows(tmp_path / "metrics.jsonl")
    assert found.first_bad_step == 0


def test_steps_are_counted_and_checkpoints_follow_the_plan(tmp_path: Path) -> None:
    with log_in(tmp_path, checkpoint_every=3) as log:
        train(log, Line(), eval_strategy="epoch", save_strategy="steps", save_steps=100)
    start, *middle, end = rows(tmp_path)
    assert (start["event"], start["total_epochs"], end["status"]) == ("start", 8, "completed")
    reports = [row for row in middle if "loss" in row.get("metrics", {})]
    assert [(row["epoch"], row["step"]) for row in reports] == [(n - 1, n) for n in range(1, 9)]
    assert all({"grad_norm", "steps_per_second"} <= set(row["metrics"]) for row in reports[1:])
    assert all(row["learning_rate"] > 0 for row in reports)
    assert [row["epoch"] for row in middle if "eval_loss" in row.get("metrics", {})] == [3, 7]
    saved = [(row["epoch"], row["final"]) for row in middle if row["event"] == "checkpoint"]
    assert saved == [(2, False), (5, False), (7, False), (7, True)]
    assert not [row for row in middle if "train_loss" in row.get("metrics", {})], (
        "the mean of the run is no report"
    )


def test_epochs_are_counted_where_the_trainer_logs_them(tmp_path: Path) -> None:
    with log_in(tmp_path, checkpoint_every=2) as log:
        train(
            log,
            Line(),
            logging_strategy="epoch",
            eval_strategy="epoch",
            save_strategy="steps",
            save_steps=100,
        )
    found = rows(tmp_path)
    assert found[0]["total_epochs"] == 2
    assert [row["epoch"] for row in found if "loss" in row.get("metrics", {})] == [0, 1]
    assert [
        row["epoch"] for row in found if row["event"] == "checkpoint" and not row["final"]
    ] == [1]


def test_a_resumed_run_says_from_where(tmp_path: Path) -> None:
    with log_in(tmp_path) as log:
        train(log, Line(), save_strategy="steps", save_steps=3, max_steps=4)
    with log_in(tmp_path) as again:
        train(
            again,
            Line(),
            save_strategy="steps",
            save_steps=3,
            resume=str(tmp_path / "checkpoints/checkpoint-3"),
        )
    attempt = next(row for row in rows(tmp_path) if row["event"] == "attempt")
    assert attempt["resumed_at"] == 3
    shown = [
        row["epoch"]
        for row in read_rows(tmp_path / "metrics.jsonl").effective
        if row.get("event") == "epoch"
    ]
    assert shown == sorted(set(shown)) == list(range(8))
    (resume,) = [row for row in rows(tmp_path) if row["event"] == "resume"]
    assert (resume["exact"], resume["missing"]) == (True, [])


class Killed(transformers.TrainerCallback):
    """Ends the training as kill -9 between the last save and its row would."""

    def on_save(self, args: Any, state: Any, control: Any, **_more: Any) -> None:
        if state.global_step == state.max_steps:
            raise ConnectionAbortedError


def test_a_run_killed_between_its_last_save_and_the_row_of_it_hands_in_that_checkpoint(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConnectionAbortedError), log_in(tmp_path) as log:
        train(log, Line(), before=(Killed(),), save_strategy="steps", save_steps=3)
    with log_in(tmp_path) as again:
        newest = whole_checkpoint(again.checkpoint_dir)
        train(again, Line(), save_strategy="steps", save_steps=3, resume=newest)
    told = [row for row in rows(tmp_path) if row["event"] == "checkpoint"]
    last = ("checkpoints/checkpoint-8", 7, True)
    assert (told[-1]["path"], told[-1]["epoch"], told[-1]["final"]) == last
    assert not [row for row in told[:-1] if row["path"] == last[0] or row["final"]]


def test_case_22_a_resume_without_all_parts_says_so(tmp_path: Path) -> None:
    with log_in(tmp_path) as log:
        train(log, Line(), save_strategy="steps", save_steps=3, max_steps=4)
    place = tmp_path / "checkpoints/checkpoint-3"
    for part in ("optimizer.pt", "rng_state.pth"):
        (place / part).unlink()
    with log_in(tmp_path) as again:
        train(again, Line(), save_strategy="no", resume=str(place), ignore_data_skip=True)
    (resume,) = [row for row in rows(tmp_path) if row["event"] == "resume"]
    assert resume["missing"] == ["optimizer", "random numbers", "data order (ignore_data_skip)"]


def test_checkpoints_outside_the_run_are_refused_before_training(tmp_path: Path) -> None:
    log = log_in(tmp_path / "run")
    with pytest.raises(UsageError, match="output_dir"):
        train(log, Line(), output_dir=str(tmp_path / "elsewhere"))
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


@pytest.mark.parametrize("load", [False, True])
def test_a_limit_of_one_removes_neither_the_best_nor_the_newest_that_was_told_of(
    tmp_path: Path, load: bool
) -> None:
    """The rate is too high, so that the loss on other rows is best at the first save and worse at
    each later one."""
    with log_in(tmp_path, checkpoint_every=2) as log:
        options = {
            "save_strategy": "steps",
            "save_steps": 2,
            "eval_strategy": "steps",
            "eval_steps": 2,
        }
        best = {
            "metric_for_best_model": "eval_loss",
            "load_best_model_at_end": load,
            "save_total_limit": 1,
        }
        trainer = train(
            log, Line(), learning_rate=0.9, lr_scheduler_type="constant", **options, **best
        )
    found = rows(tmp_path)
    told = [row for row in found if row["event"] == "checkpoint"]
    newest, final = (
        [row["path"] for row in told if not row["final"]][-1],
        [row for row in told if row["final"]],
    )
    assert newest == "checkpoints/checkpoint-8"
    chosen = Path(trainer.state.best_model_checkpoint)
    assert chosen.name != "checkpoint-8"
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == sorted(
        [chosen.name, "checkpoint-8"]
    )
    assert [row["path"] for row in final] == [f"checkpoints/{chosen.name}" if load else newest]


def test_case_23_a_best_by_the_other_direction_than_the_plans_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_METRIC", "perplexity")
    monkeypatch.setenv("HARNESS_DIRECTION", "minimize")
    with pytest.raises(UsageError, match="the worst checkpoint would be kept") as raised:
        train(
            log_in(tmp_path),
            Line(),
            save_strategy="steps",
            save_steps=2,
            metric_for_best_model="perplexity",
        )
    assert raised.value.code == "direction_differs"
    assert not (tmp_path / "metrics.jsonl").exists()


def test_the_best_checkpoint_has_the_epoch_in_which_it_was_saved(tmp_path: Path) -> None:
    """The rate is too high, so that the loss on other rows is best after the first epoch."""
    each = {
        "logging_strategy": "epoch",
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "num_train_epochs": 3,
    }
    best = {"metric_for_best_model": "eval_loss", "load_best_model_at_end": True}
    with log_in(tmp_path) as log:
        train(
            log,
            Line(),
            optim="sgd",
            learning_rate=0.1,
            lr_scheduler_type="constant",
            max_grad_norm=0.0,
            **each,
            **best,
        )
    told = [
        (row["path"], row["epoch"], row["final"])
        for row in rows(tmp_path)
        if row["event"] == "checkpoint"
    ]
    steps = [f"checkpoints/checkpoint-{4 * (epoch + 1)}" for epoch in range(3)]
    assert told == [
        *((path, epoch, False) for epoch, path in enumerate(steps)),
        (steps[0], 0, True),
    ]
