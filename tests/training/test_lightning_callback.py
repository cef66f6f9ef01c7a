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
def library(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    monkeypatch.chdir(tmp_path)
    return pytest.importorskip(request.param)


def callback(library: Any, log: RunLogger) -> Any:
    module = importlib.import_module("harness.training.lightning_callback")
    return module.LightningCallback(log)


def line(
    library: Any, *, broken: int | None = None, skips: bool = False, rate: float = 0.01
) -> Any:
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
            return torch.optim.SGD(self.parameters(), lr=rate)

    return Line()


def fit(
    library: Any,
    folder: Path,
    model: Any,
    *,
    resume: str | None = None,
    every: int | None = 2,
    **more: Any,
) -> Any:
    log = RunLogger(
        run_dir=folder,
        experiment="exp-0001",
        run="run-01",
        token="t",
        seed=1,
        checkpoint_every=every,
    )
    loader = torch.utils.data.DataLoader(torch.arange(float(ROWS)).reshape(-1, 1), batch_size=2)
    options: dict[str, Any] = {
        "max_epochs": 3,
        "default_root_dir": log.checkpoint_dir,
        "logger": False,
    } | more
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    with log:
        callbacks = [callback(library, log), *options.pop("callbacks", [])]
        trainer = library.Trainer(callbacks=callbacks, log_every_n_steps=1, **quiet, **options)
        trainer.fit(model, loader, loader, ckpt_path=resume)
    return trainer


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / "metrics.jsonl").read_text().splitlines()]


def test_an_epoch_is_a_row_and_checkpoints_follow_the_plan(library: Any, tmp_path: Path) -> None:
    fit(library, tmp_path, line(library))
    start, *middle, end = rows(tmp_path)
    assert (start["total_epochs"], start["config"], end["status"]) == (
        3,
        {"width": 1},
        "completed",
    )
    epochs = [row for row in middle if row["event"] == "epoch"]
    assert [(row["epoch"], row["step"], row["learning_rate"]) for row in epochs] == [
        (0, 4, 0.01),
        (1, 8, 0.01),
        (2, 12, 0.01),
    ]
    assert all(
        {"loss", "val_loss", "grad_norm", "steps_per_second"} <= set(row["metrics"])
        for row in epochs
    )
    assert epochs[2]["metrics"]["loss"] < epochs[0]["metrics"]["loss"]
    saved = [
        (row["path"].rpartition("/")[2], row["epoch"], row["final"])
        for row in middle
        if row["event"] == "checkpoint"
    ]
    assert ("epoch-0001.ckpt", 1, False) in saved
    assert saved[-1] == ("epoch=2-step=12.ckpt", 2, True)


def test_a_nan_is_seen_whether_it_is_returned_or_skipped(library: Any, tmp_path: Path) -> None:
    fit(
        library,
        tmp_path / "returned",
        line(library, broken=1),
        enable_checkpointing=False,
        every=None,
    )
    losses = [
        row["metrics"]["loss"] for row in rows(tmp_path / "returned") if row["event"] == "epoch"
    ]
    assert losses[1] == "NaN"
    fit(
        library,
        tmp_path / "skipped",
        line(library, broken=1, skips=True),
        enable_checkpointing=False,
        every=None,
    )
    skipped = [
        row["metrics"].get("skipped_batches")
        for row in rows(tmp_path / "skipped")
        if row["event"] == "epoch"
    ]
    assert skipped == [None, 4, None]


def test_a_resumed_run_says_from_where(library: Any, tmp_path: Path) -> None:
    trainer = fit(library, tmp_path, line(library))
    fit(
        library,
        tmp_path,
        line(library),
        resume=trainer.checkpoint_callback.best_model_path,
        max_epochs=5,
    )
    attempt = next(row for row in rows(tmp_path) if row["event"] == "attempt")
    assert attempt["resumed_at"] == 3
    assert [row["epoch"] for row in rows(tmp_path) if row["event"] == "epoch"] == [0, 1, 2, 3, 4]


def test_checkpoints_outside_the_run_are_refused_before_training(
    library: Any, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="default_root_dir"):
        fit(library, tmp_path / "run", line(library), default_root_dir=tmp_path / "elsewhere")
    assert not [row for row in rows(tmp_path / "run") if row["event"] == "epoch"]


def test_the_loss_of_a_batch_does_not_depend_on_how_many_are_accumulated(
    library: Any, tmp_path: Path
) -> None:
    fit(
        library,
        tmp_path,
        line(library),
        max_epochs=1,
        accumulate_grad_batches=4,
        enable_checkpointing=False,
    )
    (row,) = [row for row in rows(tmp_path) if row["event"] == "epoch"]
    assert row["metrics"]["loss"] == pytest.approx(sum(x * x for x in range(ROWS)) / ROWS)


def saver(library: Any, monitor: str, **more: Any) -> Any:
    return importlib.import_module(f"{library.__name__}.callbacks").ModelCheckpoint(
        monitor=monitor, **more
    )


def told(folder: Path) -> list[tuple[str, int, bool]]:
    found = [row for row in rows(folder) if row["event"] == "checkpoint"]
    return [(row["path"].rpartition("/")[2], row["epoch"], row["final"]) for row in found]


def test_the_best_checkpoint_has_the_epoch_in_which_it_was_saved(
    library: Any, tmp_path: Path
) -> None:
    """The rate is too high, so that the loss on other rows is best after the first epoch."""
    first, second = ("epoch=0-step=4.ckpt", 0), ("epoch=1-step=8.ckpt", 1)
    given = {"model": line(library, rate=0.1), "every": None}
    trainer = fit(
        library,
        tmp_path,
        **given,
        callbacks=[saver(library, "val_loss", save_top_k=2)],
        max_epochs=2,
    )
    before = told(tmp_path)
    assert before == [(*first, False), (*second, False), (*first, True)]
    newest = str(Path(trainer.checkpoint_callback.best_model_path).with_name(second[0]))
    again = [saver(library, "val_loss", save_top_k=2)]
    fit(library, tmp_path, **given, callbacks=again, max_epochs=3, resume=newest)
    after = told(tmp_path)[len(before) :]
    assert sorted(after[:-1]) == [(*first, False), (*second, False)]
    assert after[-1] == (*first, True)


@pytest.mark.parametrize(
    ("monitor", "mode", "planned", "right"),
    [
        ("val_acc", "min", None, "max"),
        ("val/f1", "min", ("f1", "maximize"), "max"),
        ("brier_score", "max", ("brier_score", "minimize"), "min"),
        ("val_f1", "min", None, None),
        ("val_accuracy", "min", ("accuracy", "minimize"), None),
    ],
)
def test_case_23_a_best_by_the_other_direction_is_refused(
    library: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    monitor: str,
    mode: str,
    planned: tuple[str, str] | None,
    right: str | None,
) -> None:
    if planned is not None:
        monkeypatch.setenv("HARNESS_METRIC", planned[0])
        monkeypatch.setenv("HARNESS_DIRECTION", planned[1])
    callbacks = [saver(library, monitor, mode=mode)]
    if right is None:
        fit(library, tmp_path, line(library), callbacks=callbacks, max_steps=0)
        return
    with pytest.raises(UsageError, match="the worst checkpoint would be kept") as raised:
        fit(library, tmp_path, line(library), callbacks=callbacks)
    assert raised.value.code == "direction_differs"
    assert raised.value.hint == f"Pass ModelCheckpoint(mode={right!r})."
    assert not [row for row in rows(tmp_path) if row["event"] == "epoch"]


@pytest.mark.parametrize("within", [False, True])
def test_a_resume_is_exact_at_an_epochs_end_and_says_what_it_is_not_within_one(
    library: Any, tmp_path: Path, within: bool
) -> None:
    every = {"every_n_train_steps": 5} if within else {"save_top_k": -1}
    saver = library.callbacks.ModelCheckpoint(dirpath=tmp_path / "checkpoints", **every)
    fit(library, tmp_path, line(library), callbacks=[saver], every=None)
    module = importlib.import_module("harness.training.lightning_callback")
    (tmp_path / "checkpoints/torn.ckpt").write_bytes(b"PK")
    newest = module.whole_checkpoint(tmp_path / "checkpoints")
    assert newest is not None
    fit(library, tmp_path, line(library), max_epochs=5, resume=newest, every=None)
    (said,) = [row for row in rows(tmp_path) if row["event"] == "resume"]
    assert said["missing"] == (["the place within the epoch"] if within else [])
    held = torch.load(newest, weights_only=True)
    del held["harness_random"]
    torch.save(held, newest)
    fit(library, tmp_path, line(library), max_epochs=6, resume=newest, every=None)
    said = [row for row in rows(tmp_path) if row["event"] == "resume"][-1]
    assert said["missing"][:3] == [
        f"random numbers of {one}" for one in ("python", "numpy", "torch")
    ]
