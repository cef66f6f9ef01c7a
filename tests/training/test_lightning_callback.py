"""Lightning through the callback, with both names that the package has."""

import importlib
import json
import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from harness.errors import UsageError  # noqa: E402 - needs torch
from harness.run_logger import RunLogger  # noqa: E402

ROWS = 8


@pytest.fixture(params=["lightning.pytorch", "pytorch_lightning"])
def library(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    return pytest.importorskip(request.param)


def callback(library: Any, log: RunLogger) -> Any:
    module = importlib.import_module("harness.training.lightning_callback")
    return module.RunLoggerCallback(log)


def line(library: Any, *, broken: int | None = None, skips: bool = False) -> Any:
    class Line(library.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.save_hyperparameters({"width": 1})
            self.weight = torch.nn.Parameter(torch.ones(1))

        def training_step(self, batch: Any, index: int) -> Any:
            loss = ((self.weight * batch - 2 * batch) ** 2).mean()
            if self.current_epoch == broken:
                return None if skips else loss * math.nan
            return loss

        def validation_step(self, batch: Any, index: int) -> None:
            self.log("val_loss", ((self.weight * batch - 2 * batch) ** 2).mean())

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    return Line()


def fit(
    library: Any, folder: Path, model: Any, *, resume: str | None = None, every: int | None = 2, **more: Any
) -> Any:
    log = RunLogger(run_dir=folder, experiment="exp-0001", run="run-01", token="t", seed=1, checkpoint_every=every)
    loader = torch.utils.data.DataLoader(torch.arange(float(ROWS)).reshape(-1, 1), batch_size=2)
    options: dict[str, Any] = {"max_epochs": 3, "default_root_dir": log.checkpoint_dir, "logger": False} | more
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    with log:
        trainer = library.Trainer(callbacks=[callback(library, log)], log_every_n_steps=1, **quiet, **options)
        trainer.fit(model, loader, loader, ckpt_path=resume)
    return trainer


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / "metrics.jsonl").read_text().splitlines()]


def test_an_epoch_is_a_row_and_checkpoints_follow_the_plan(library: Any, tmp_path: Path) -> None:
    fit(library, tmp_path, line(library))
    start, *middle, end = rows(tmp_path)
    assert (start["total_epochs"], start["config"], end["status"]) == (3, {"width": 1}, "completed")
    epochs = [row for row in middle if row["event"] == "epoch"]
    assert [(row["epoch"], row["step"], row["learning_rate"]) for row in epochs] == [
        (0, 4, 0.01),
        (1, 8, 0.01),
        (2, 12, 0.01),
    ]
    assert all({"loss", "val_loss", "grad_norm", "steps_per_second"} <= set(row["metrics"]) for row in epochs)
    assert epochs[2]["metrics"]["loss"] < epochs[0]["metrics"]["loss"]
    saved = [
        (row["path"].rpartition("/")[2], row["epoch"], row["final"]) for row in middle if row["event"] == "checkpoint"
    ]
    assert ("epoch-0001.ckpt", 1, False) in saved
    assert saved[-1] == ("epoch=2-step=12.ckpt", 2, True)


def test_a_nan_is_seen_whether_it_is_returned_or_skipped(library: Any, tmp_path: Path) -> None:
    fit(library, tmp_path / "returned", line(library, broken=1), enable_checkpointing=False, every=None)
    losses = [row["metrics"]["loss"] for row in rows(tmp_path / "returned") if row["event"] == "epoch"]
    assert losses[1] == "NaN"
    fit(library, tmp_path / "skipped", line(library, broken=1, skips=True), enable_checkpointing=False, every=None)
    skipped = [row["metrics"].get("skipped_batches") for row in rows(tmp_path / "skipped") if row["event"] == "epoch"]
    assert skipped == [None, 4, None]


def test_a_resumed_run_says_from_where(library: Any, tmp_path: Path) -> None:
    trainer = fit(library, tmp_path, line(library))
    fit(library, tmp_path, line(library), resume=trainer.checkpoint_callback.best_model_path, max_epochs=5)
    attempt = next(row for row in rows(tmp_path) if row["event"] == "attempt")
    assert attempt["resumed_at"] == 3
    assert [row["epoch"] for row in rows(tmp_path) if row["event"] == "epoch"] == [0, 1, 2, 3, 4]


def test_checkpoints_outside_the_run_are_refused_before_training(library: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="default_root_dir"):
        fit(library, tmp_path / "run", line(library), default_root_dir=tmp_path / "elsewhere")
    assert not [row for row in rows(tmp_path / "run") if row["event"] == "epoch"]
