"""Run logger for Lightning's Trainer, of `lightning` or `pytorch_lightning`.

with RunLogger.from_environment() as log:
    trainer = Trainer(default_root_dir=log.checkpoint_dir, callbacks=[LightningCallback(log)])
    trainer.fit(model, loader, ckpt_path=whole_checkpoint(log.checkpoint_dir))
"""

import pickle
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from harness.clock import Clock
from harness.domain.statuses import Direction
from harness.errors import UsageError
from harness.run_logger import RunLogger
from harness.training.cadence import (
    planned_direction,
    should_checkpoint,
)
from harness.training.callback_rows import (
    Pace,
    measured,
    numbers,
)
from harness.training.training_state import random_state, restore_random

# Two packages have the same classes, but not as one: the trainer's package must be the callback's.
if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback, LightningModule, Trainer
else:
    try:
        from lightning.pytorch import Callback, LightningModule, Trainer
    except ImportError:
        from pytorch_lightning import Callback, LightningModule, Trainer


_RANDOM = "harness_random"
_UNREADABLE = (
    OSError,
    RuntimeError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    pickle.UnpicklingError,
)
_ACCURACY = re.compile(r"(?:^|[^a-z])acc(?:uracy)?(?:[^a-z]|$)", re.IGNORECASE)


class LightningCallback(Callback):  # type: ignore[misc] # the library is not followed
    """One row an epoch: what the module logged, else the mean loss of its batches; `grad_norm` (the
    largest seen), `steps_per_second`, `gpu_memory_mb`, and `skipped_batches`, for which
    `training_step` returned None (a common way to hide a NaN).

    Checkpoints that are saved while it is there hold the random numbers too, and a resume at an
    epoch's end is exact; else the run names what was not restored.

    The callback starts the log; its owner ends it. It logs the checkpoints of ModelCheckpoint, and
    saves those that the plan's `checkpoint_every` asks for. Raises UsageError when checkpoints
    would lie outside the run's folder, and when ModelCheckpoint would keep the worst as the best:
    its default `mode` is "min".
    """

    def __init__(self, log: RunLogger, *, clock: Clock | None = None) -> None:
        self._log = log
        self._pace = Pace(clock)
        self._logged: dict[str, tuple[float, int | None]] = {}
        """Path of a checkpoint -> its modification time, and its epoch where that is known."""
        self._newest: tuple[Path, int] | None = None
        self._losses: Any = 0.0
        """The sum over the epoch's batches, as a tensor: reading it each batch would make the GPU
        wait."""
        self._norm: Any = None
        self._batches = self._skipped = 0
        self._restored: Mapping[str, Any] | None = None
        """What the checkpoint held from which the training goes on."""
        self._missing: list[str] = []

    def on_save_checkpoint(
        self, _trainer: Trainer, _module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        checkpoint[_RANDOM] = random_state()

    def on_load_checkpoint(
        self, _trainer: Trainer, _module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        self._restored = {name: checkpoint.get(name) for name in (_RANDOM, "loops")}

    def on_fit_start(self, _trainer: Trainer, _module: LightningModule) -> None:
        # Before the loader draws the order of the first epoch.
        if self._restored is not None:
            self._missing = restore_random(self._restored[_RANDOM] or {})

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero:
            return
        for saver in trainer.checkpoint_callbacks:
            _require_inside(saver.dirpath, self._log.checkpoint_dir)
            _require_best(saver)
        total = trainer.max_epochs if trainer.max_epochs and trainer.max_epochs > 0 else None
        resumed_at = trainer.current_epoch or None
        if self._restored is not None:
            missing = [*self._missing, *_not_restored(trainer, self._restored)]
            self._log.resumed(missing)
        self._log.start(total, dict(pl_module.hparams), resumed_at=resumed_at)
        if resumed_at is not None:
            self._log_checkpoints(trainer, None)
        self._pace.restart(trainer.global_step)

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        *_batch: Any,
        **_more: Any,
    ) -> None:
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if loss is None:
            self._skipped += 1
        elif isinstance(loss, torch.Tensor):
            # Lightning has divided the loss by the number of accumulated batches.
            parts = trainer.accumulate_grad_batches if pl_module.automatic_optimization else 1
            self._losses = loss.detach() * parts + self._losses
            self._batches += 1

    def on_before_optimizer_step(
        self, trainer: Trainer, pl_module: LightningModule, _optimizer: Any
    ) -> None:
        every = trainer.log_every_n_steps or 1
        if trainer.global_step % every == 0:
            norms = [p.grad.detach().norm() for p in pl_module.parameters() if p.grad is not None]
            if norms:
                norm = torch.stack(norms).norm()
                # torch.maximum, unlike max(), keeps a NaN.
                self._norm = norm if self._norm is None else torch.maximum(norm, self._norm)

    def on_train_epoch_start(self, trainer: Trainer, _module: LightningModule) -> None:
        self._log_checkpoints(trainer, trainer.current_epoch - 1)
        self._begin_epoch()
        self._pace.restart(trainer.global_step)

    def on_train_epoch_end(self, trainer: Trainer, _module: LightningModule) -> None:
        metrics = numbers(trainer.callback_metrics)
        if self._batches and not {"loss", "train_loss", "train/loss"} & metrics.keys():
            metrics["loss"] = self._losses / self._batches
        if self._norm is not None:
            metrics.setdefault("grad_norm", self._norm)
        if self._skipped:
            metrics["skipped_batches"] = self._skipped
        metrics |= measured(self._pace, trainer.global_step)
        epoch = trainer.current_epoch
        if trainer.is_global_zero:
            self._log.epoch(epoch, metrics, step=trainer.global_step, learning_rate=_rate(trainer))
        every = self._log.checkpoint_every
        if every and should_checkpoint(epoch, None, every):
            path = self._log.checkpoint_dir / f"epoch-{epoch:04d}.ckpt"
            trainer.save_checkpoint(path)  # a collective call: every process makes it
            self._saved(trainer, path, epoch)

    def on_fit_end(self, trainer: Trainer, _module: LightningModule) -> None:
        last = max(0, trainer.current_epoch - 1)
        self._log_checkpoints(trainer, last)
        best = next(
            (saver.best_model_path for saver in trainer.checkpoint_callbacks if saver.monitor), ""
        )
        path, epoch = self._newest or (None, last)
        if best:
            _, known = self._logged.get(best, (0.0, None))
            path, epoch = Path(best), last if known is None else known
        if path is not None and path.exists() and trainer.is_global_zero:
            self._log.checkpoint_saved(path, epoch=epoch, final=True)

    def _begin_epoch(self) -> None:
        self._losses, self._norm = 0.0, None
        self._batches = self._skipped = 0

    def _log_checkpoints(self, trainer: Trainer, epoch: int | None) -> None:
        """Log what ModelCheckpoint has written since the last call.

        With `epoch` None the checkpoints are an earlier attempt's, and each names its epoch; one
        that does not is left out.
        """
        # ModelCheckpoint saves after this callback's turn, so a save is seen an epoch later.
        for saver in trainer.checkpoint_callbacks:
            for name in {saver.best_model_path, saver.last_model_path, *saver.best_k_models}:
                path = Path(name)
                if not name or not path.exists():
                    continue
                changed, known = path.stat().st_mtime, self._logged.get(name)
                if known is not None and known[0] == changed:
                    continue
                saved_at = _epoch_in(path) if epoch is None else max(0, epoch)
                self._logged[name] = changed, saved_at
                if saved_at is not None:
                    self._saved(trainer, path, saved_at)

    def _saved(self, trainer: Trainer, path: Path, epoch: int) -> None:
        self._newest = path, epoch
        if trainer.is_global_zero:
            self._log.checkpoint_saved(path, epoch=epoch)


def whole_checkpoint(folder: Path) -> str | None:
    """The newest checkpoint below `folder` that can be read; None without any."""
    found = []
    for path in folder.rglob("*.ckpt"):
        try:
            held = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
            found.append((held["epoch"], held["global_step"], path.stat().st_mtime_ns, path))
        except _UNREADABLE:
            continue
    return str(max(found)[-1]) if found else None


def _not_restored(trainer: Trainer, restored: Mapping[str, Any]) -> list[str]:
    """Names of what Lightning and this callback did not restore."""
    missing = []
    loops = (restored["loops"] or {}).get("fit_loop") or {}
    batches = loops.get("epoch_loop.batch_progress") or {}
    if not batches.get("is_last_batch"):
        missing.append("the place within the epoch")
    if any(getattr(loader, "generator", None) for loader in _loaders(trainer)):
        missing.append("random numbers of the loader's own generator")
    if trainer.world_size > 1:
        missing.append("random numbers of the other processes")
    on_gpu = trainer.strategy.root_device.type == "cuda"
    if on_gpu and not torch.are_deterministic_algorithms_enabled():
        missing.append("order of sums on the GPU (torch.use_deterministic_algorithms is off)")
    return missing


def _loaders(trainer: Trainer) -> list[Any]:
    loaders = trainer.train_dataloader
    if isinstance(loaders, Mapping):
        return list(loaders.values())
    return list(loaders) if isinstance(loaders, list | tuple) else [loaders]


def _epoch_in(path: Path) -> int | None:
    """The epoch that a checkpoint of Lightning holds; None for a file of another form."""
    if not path.is_file():
        return None
    try:
        epoch = torch.load(path, map_location="cpu", mmap=True, weights_only=True)["epoch"]
    except _UNREADABLE:
        return None
    return epoch if isinstance(epoch, int) else None


def _require_best(saver: Any) -> None:
    monitor, mode = getattr(saver, "monitor", None), getattr(saver, "mode", None)
    if monitor is None or mode is None:
        return
    direction, source = planned_direction(monitor), "the plan says"
    if direction is None and _ACCURACY.search(monitor):
        direction, source = Direction.MAXIMIZE, "its name says"
    if direction is None or (mode == "max") == (direction is Direction.MAXIMIZE):
        return
    right = "max" if direction is Direction.MAXIMIZE else "min"
    raise UsageError(
        f"ModelCheckpoint monitors {monitor!r} with mode={mode!r}; {source} {direction}: the worst"
        " checkpoint would be kept as the best.",
        hint=f"Pass ModelCheckpoint(mode={right!r}).",
        code="direction_differs",
    )


def _rate(trainer: Trainer) -> float | None:
    return next(
        (float(group["lr"]) for each in trainer.optimizers for group in each.param_groups), None
    )


def _require_inside(folder: Any, home: Path) -> None:
    if folder is not None and not Path(folder).resolve().is_relative_to(home.resolve().parent):
        raise UsageError(
            f"ModelCheckpoint writes to {folder}; expected a folder below {home}, where this run's"
            " checkpoints belong.",
            hint=(
                "Pass Trainer(default_root_dir=log.checkpoint_dir), or"
                " ModelCheckpoint(dirpath=log.checkpoint_dir)."
            ),
            code="checkpoint_outside",
        )
