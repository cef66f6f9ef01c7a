"""Trainings whose libraries keep no whole state: each goes on exactly, or its rows say why not."""

import json
import logging
import os
import warnings
from pathlib import Path

import numpy as np
import torch

from harness.run_logger import RunLogger
from harness.training.checkpointer import Checkpointer
from tests.training.torch_loop import digest


def lightning(log: RunLogger, folder: Path) -> None:
    """Dropout, a shuffled loader and a scheduler; a checkpoint an epoch."""
    import lightning.pytorch as library

    from harness.training.lightning_callback import LightningCallback, whole_checkpoint

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")

    class Small(library.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(4, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 3)
            )

        def training_step(self, batch, _index):
            return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

        def validation_step(self, batch, _index):
            loss = torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])
            self.log("val_loss", loss)

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2)]

    torch.manual_seed(log.seed)
    model = Small()
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(5))
    rows = torch.utils.data.TensorDataset(x, x.argmax(1) % 3)
    loader = torch.utils.data.DataLoader(rows, batch_size=10, shuffle=True)
    saver = library.callbacks.ModelCheckpoint(
        dirpath=log.checkpoint_dir, filename="{epoch}", save_top_k=-1, save_on_train_epoch_end=True
    )
    trainer = library.Trainer(
        max_epochs=6,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        default_root_dir=log.checkpoint_dir,
        callbacks=[LightningCallback(log), saver],
    )
    trainer.fit(model, loader, loader, ckpt_path=whole_checkpoint(log.checkpoint_dir))
    (folder / "digest.txt").write_text(json.dumps(digest(model, trainer.optimizers[0])))


def optuna_callback(log: RunLogger, folder: Path) -> None:
    """A study with a journal of its own, as Optuna's pages show it."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    from harness.training.optuna_study import OptunaCallback, repair_journal

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    path = folder / "own.journal"
    repair_journal(path)
    study = optuna.create_study(
        study_name="own",
        storage=JournalStorage(JournalFileBackend(str(path))),
        sampler=optuna.samplers.TPESampler(seed=log.seed),
        load_if_exists=True,
    )

    def objective(trial: optuna.Trial) -> float:
        return (trial.suggest_float("x", -1, 1) - 0.3) ** 2

    done = sum(trial.state.is_finished() for trial in study.trials)
    study.optimize(
        objective, n_trials=max(0, 12 - done), callbacks=[OptunaCallback(log, study=study)]
    )
    made = [(trial.number, trial.params) for trial in study.trials if trial.state.is_finished()]
    (folder / "digest.txt").write_text(json.dumps(made))


def boosting(log: RunLogger, folder: Path) -> None:
    """LightGBM with bagging, goes on by `init_model`, as its users write it."""
    import lightgbm

    drawn = np.random.default_rng(3)
    x = drawn.normal(size=(300, 5))
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(int)
    path, rounds = log.checkpoint_dir / "model.txt", 30
    before = lightgbm.Booster(model_file=path) if path.exists() else None
    done = before.num_trees() if before else 0
    log.start(rounds, resumed_at=done or None)

    def keep(now) -> None:
        log.epoch(now.iteration, {value[1]: value[2] for value in now.evaluation_result_list})
        new = path.with_suffix(".new")
        now.model.save_model(new)
        new.replace(path)
        log.checkpoint_saved(path, epoch=now.iteration)

    settings = {
        "objective": "binary",
        "bagging_fraction": 0.7,
        "bagging_freq": 1,
        "seed": log.seed,
        "num_threads": 1,
        "verbose": -1,
    }
    rows = lightgbm.Dataset(x, y, free_raw_data=False)
    if done < rounds:
        lightgbm.train(
            settings,
            rows,
            rounds - done,
            valid_sets=[rows],
            init_model=before,
            callbacks=[keep],
        )
    # The trees: the parameters at the end of the file name the run.
    (folder / "digest.txt").write_text(path.read_text().partition("end of trees")[0])


def average(log: RunLogger, folder: Path) -> None:
    """An average of the weights beside the model that the checkpoints do not hold."""
    torch.manual_seed(log.seed)
    model = torch.nn.Linear(4, 3)
    mean = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    keeper = Checkpointer(log, model=model, optimizer=optimizer, every=1)
    at = keeper.resume()
    log.start(8, resumed_at=at.epoch if at.resumed else None)
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(5))
    for epoch in range(at.epoch, 8):
        loss = torch.nn.functional.cross_entropy(model(x), x.argmax(1) % 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean.update_parameters(model)
        log.epoch(epoch, {"loss": loss.item()})
        keeper.after_epoch(epoch, 8)
    (folder / "digest.txt").write_text(json.dumps(digest(mean, optimizer)))


def by_hand(log: RunLogger, folder: Path) -> None:
    """Saves the weights only, and draws its batches anew."""
    drawn = np.random.default_rng(log.seed)
    x = np.random.default_rng(3).normal(size=(200, 3))
    y = x @ np.array([1.0, -2.0, 0.5])
    path = log.checkpoint_dir / "weights.json"
    held = json.loads(path.read_text()) if path.exists() else {"epoch": 0, "w": [0.0] * 3}
    w = np.array(held["w"])
    log.start(40, resumed_at=held["epoch"] or None)
    for epoch in range(held["epoch"], 40):
        batch = drawn.integers(0, len(y), 20)
        gap = x[batch] @ w - y[batch]
        w = w - 0.05 * x[batch].T @ gap / len(batch)
        log.epoch(epoch, {"loss": float((gap**2).mean())})
        path.with_suffix(".new").write_text(json.dumps({"epoch": epoch + 1, "w": list(w)}))
        os.replace(path.with_suffix(".new"), path)
    (folder / "digest.txt").write_text(json.dumps(list(w)))
