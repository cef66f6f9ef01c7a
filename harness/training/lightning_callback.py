"""Lightning's Trainer, of `lightning` or `pytorch_lightning`, logs to the run logger through this
callback.

with RunLogger.from_environment() as log:
    Trainer(default_root_dir=log.checkpoint_dir, callbacks=[RunLoggerCallback(log)]).fit(model,
    loader)
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
from harness.training.cadence import should_checkpoint
from harness.training.reports import Pace, measured, numbers, planned_direction

if (
    "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules
):  # the one that is used already
    from pytorch_lightning import Callback, LightningModule, Trainer
else:
    try:
        from lightning.pytorch import Callback, LightningModule, Trainer
    except ImportError:
        from pytorch_lightning import Callback, LightningModule, Trainer


_ACCURACY = re.compile(r"(?:^|[^a-z])acc(?:uracy)?(?:[^a-z]|$)", re.IGNORECASE)


class RunLoggerCallback(Callback):  # type: ignore[misc] # the library is not followed
    """One row an epoch: all that the module logged, the mean loss of its batches where it logged
    none, `grad_norm` (the largest that was seen), `steps_per_second`, `gpu_memory_mb`, and
    `skipped_batches`: those for which `training_step` returned None, which is how a NaN is made to
    vanish.

    The callback starts the log; whoever made it ends it. Checkpoints of ModelCheckpoint are told
    of; where the plan's `checkpoint_every` wants one, one is saved. Raises UsageError when they
    would lie outside the run's folder, and when ModelCheckpoint would keep the worst for the best:
    its `mode` is "min" where nothing else is passed.
    """

    def __init__(self, log: RunLogger, *, clock: Clock | None = None) -> None:
        self._log = log
        self._pace = Pace(clock)
        self._told: dict[str, tuple[float, int | None]] = {}
        """Path of a checkpoint -> when it was changed last, its epoch where that is known."""
        self._newest: tuple[Path, int] | None = None
        self._losses: Any = 0.0
        """The sum over the epoch's batches; it stays where it is computed until the epoch ends."""
        self._norm: Any = None
        self._batches = self._skipped = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero:
            return
        for saver in trainer.checkpoint_callbacks:
            _require_inside(saver.dirpath, self._log.checkpoint_dir)
            _require_best(saver)
        total = trainer.max_epochs if trainer.max_epochs and trainer.max_epochs > 0 else None
        resumed_at = trainer.current_epoch or None
        self._log.start(total, dict(pl_module.hparams), resumed_at=resumed_at)
        if resumed_at is not None:
            self._tell_of_checkpoints(trainer, None)
        self._pace.restart(trainer.global_step)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, *_batch: Any, **_more: Any
    ) -> None:
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if loss is None:
            self._skipped += 1
        elif isinstance(loss, torch.Tensor):
            parts = trainer.accumulate_grad_batches if pl_module.automatic_optimization else 1
            self._losses = (
                loss.detach() * parts + self._losses
            )  # Lightning has divided it, for the gradient's sake
            self._batches += 1

    def on_before_optimizer_step(
        self, trainer: Trainer, pl_module: LightningModule, _optimizer: Any
    ) -> None:
        every = trainer.log_every_n_steps or 1
        if trainer.global_step % every == 0:
            norms = [p.grad.detach().norm() for p in pl_module.parameters() if p.grad is not None]
            if norms:
                norm = torch.stack(norms).norm()
                self._norm = (
                    norm if self._norm is None else torch.maximum(norm, self._norm)
                )  # NaN stays NaN

    def on_train_epoch_start(self, trainer: Trainer, _module: LightningModule) -> None:
        self._tell_of_checkpoints(trainer, trainer.current_epoch - 1)
        self._begin_epoch()
        self._pace.restart(trainer.global_step)

    def on_train_epoch_end(self, trainer: Trainer, _module: LightningModule) -> None:
        found = numbers(trainer.callback_metrics)
        if self._batches and not any(
            name in ("loss", "train_loss", "train/loss") for name in found
        ):
            found["loss"] = self._losses / self._batches
        if self._norm is not None:
            found.setdefault("grad_norm", self._norm)
        if self._skipped:
            found["skipped_batches"] = self._skipped
        found |= measured(self._pace, trainer.global_step)
        epoch = trainer.current_epoch
        if trainer.is_global_zero:
            self._log.epoch(epoch, found, step=trainer.global_step, learning_rate=_rate(trainer))
        every = self._log.checkpoint_every
        if every and should_checkpoint(epoch, None, every):
            path = self._log.checkpoint_dir / f"epoch-{epoch:04d}.ckpt"
            trainer.save_checkpoint(path)  # every process has to call it
            self._saved(trainer, path, epoch)

    def on_fit_end(self, trainer: Trainer, _module: LightningModule) -> None:
        last = max(0, trainer.current_epoch - 1)
        self._tell_of_checkpoints(trainer, last)
        best = next(
            (saver.best_model_path for saver in trainer.checkpoint_callbacks if saver.monitor), ""
        )
        path, epoch = self._newest or (None, last)
        if best:
            _, known = self._told.get(best, (0.0, None))
            path, epoch = Path(best), last if known is None else known
        if path is not None and path.exists() and trainer.is_global_zero:
            self._log.checkpoint_saved(path, epoch=epoch, final=True)

    def _begin_epoch(self) -> None:
        self._losses, self._norm = 0.0, None
        self._batches = self._skipped = 0

    def _tell_of_checkpoints(self, trainer: Trainer, epoch: int | None) -> None:
        """Those that ModelCheckpoint has written since: it saves after this callback has had its
        turn. Those of an earlier attempt, with `epoch` None, say themselves of which epoch they
        are; one that does not is left out."""
        for saver in trainer.checkpoint_callbacks:
            for name in {saver.best_model_path, saver.last_model_path, *saver.best_k_models}:
                path = Path(name)
                if not name or not path.exists():
                    continue
                changed, known = path.stat().st_mtime, self._told.get(name)
                if known is not None and known[0] == changed:
                    continue
                of = _epoch_in(path) if epoch is None else max(0, epoch)
                self._told[name] = changed, of
                if of is not None:
                    self._saved(trainer, path, of)

    def _saved(self, trainer: Trainer, path: Path, epoch: int) -> None:
        self._newest = path, epoch
        if trainer.is_global_zero:
            self._log.checkpoint_saved(path, epoch=epoch)


def _epoch_in(path: Path) -> int | None:
    """The epoch in which Lightning wrote a checkpoint, by the checkpoint itself; None where it is
    of another form."""
    if not path.is_file():
        return None
    try:
        epoch = torch.load(path, map_location="cpu", mmap=True, weights_only=True)["epoch"]
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, pickle.UnpicklingError):
        return None
    return epoch if isinstance(epoch, int) else None


def _require_best(saver: Any) -> None:
    monitor, mode = getattr(saver, "monitor", None), getattr(saver, "mode", None)
    if monitor is None or mode is None:
        return
    direction, said = planned_direction(monitor), "the plan says"
    if direction is None and _ACCURACY.search(monitor):
        direction, said = Direction.MAXIMIZE, "its name says"
    if direction is None or (mode == "max") == (direction is Direction.MAXIMIZE):
        return
    right = "max" if direction is Direction.MAXIMIZE else "min"
    raise UsageError(
        f"ModelCheckpoint monitors {monitor!r} with mode={mode!r}; {said} {direction}: the worst"
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
            f"ModelCheckpoint writes to {folder}; expected a folder below {home}, where checkpoints"
            " of this run are looked for.",
            hint=(
                "Pass Trainer(default_root_dir=log.checkpoint_dir), or"
                " ModelCheckpoint(dirpath=log.checkpoint_dir)."
            ),
            code="checkpoint_outside",
        )
