"""Saves all that a training needs to continue bit for bit, and restores it.

    with RunLogger.from_environment() as log:
        keeper = Checkpointer(
            log, model=model, optimizer=optimizer, scheduler=scheduler, loader=loader
        )
        at = keeper.resume()
        log.start(epochs, config, resumed_at=at.epoch if at.resumed else None)
        for epoch in range(at.epoch, epochs):
            ...
            log.epoch(epoch, {"loss": loss, "accuracy": accuracy})
            keeper.after_epoch(epoch, epochs, value=accuracy)
        keeper.finish()

A checkpoint is a folder of model.pt, which `predict` loads and the run logger records, and
training.pt, which holds the rest.
"""

import os
import warnings
from collections.abc import Mapping
from dataclasses import (
    dataclass,
    field,
)
from pathlib import Path
from typing import Any

import torch

from harness.artifacts.metrics_file import rows_in
from harness.domain import variables
from harness.run_logger import RunLogger
from harness.run_logger.ranks import rank_of
from harness.training.cadence import (
    Goal,
    goal_from_environment,
    should_checkpoint,
)
from harness.training.checkpoint_store import (
    BEST,
    LATEST,
    CheckpointStore,
    Saved,
)
from harness.training.training_state import (
    averages,
    capture,
    load,
    plain,
    put_back,
    random_state,
    restore_random,
)

MODEL, TRAINING = "model.pt", "training.pt"


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """Where the training continues."""

    resumed: bool
    epoch: int
    """The first epoch to train; half done when the checkpoint was saved in its middle."""
    step: int
    """Optimizer steps done."""
    extra: dict[str, Any] = field(default_factory=dict)
    """`extra` of the save."""
    missing: tuple[str, ...] = ()
    """Names of the parts that could not be restored."""

    @property
    def exact(self) -> bool:
        """Whether the training continues as if it had never stopped."""
        return not self.missing


class Checkpointer:
    """Keeps the newest checkpoint, the best one, and those that the plan's cadence asks for;
    removes the others.

    Args:
        model, optimizer, scheduler, scaler, loader: the used ones, each with `state_dict` and
            `load_state_dict`.
        more: further parts by name: modules, optimizers, `torch.Generator`s,
            `numpy.random.Generator`s.
        every: epochs, by default the plan's `training.checkpoint_every`.
        goal: decides which checkpoint is best, by default the plan's; needed once a value is given.

    Of several processes (RANK, WORLD_SIZE) the first saves and all resume. The random state of the
    others is not saved; `resume` names it as missing.
    """

    def __init__(
        self,
        log: RunLogger,
        *,
        model: Any,
        optimizer: Any = None,
        scheduler: Any = None,
        scaler: Any = None,
        loader: Any = None,
        more: Mapping[str, Any] | None = None,
        every: int | None = None,
        goal: Goal | None = None,
    ) -> None:
        self._log, self._model, self._goal = log, model, goal
        self._loader = loader
        parts = {
            "optimizer": optimizer,
            "scheduler": scheduler,
            "scaler": scaler,
            "loader": loader,
        }
        self._parts = {name: part for name, part in parts.items() if part is not None}
        self._parts |= more or {}
        self._rank = rank_of(os.environ)
        self._processes = int(os.environ.get("WORLD_SIZE") or 1)
        self.every = every or log.checkpoint_every or 10
        self.step = 0
        """Optimizer steps so far, where the loop counts them here."""
        self._store = CheckpointStore(log.checkpoint_dir)
        self._epoch = -1
        self._unlogged: Saved | None = None
        """Saved by an attempt that was killed before it logged the checkpoint's row."""

    def resume(self) -> Resumed:
        """Restore the newest complete checkpoint, if there is one; call it before `log.start`.

        A checkpoint with wrong bytes is passed over for the one before it. A missing part is named
        in a warning, in `missing`, and in a row of the run. Raises UsageError for a checkpoint with
        other than plain types, or of another data order.
        """
        if self._rank == 0:
            self._store.sweep()
        for saved in reversed(self._store.complete()):
            problem = saved.problem()
            if problem is None:
                return self._put_back(saved)
            warnings.warn(
                f"checkpoint {saved.folder.name} is passed over: {problem}", stacklevel=2
            )
        return Resumed(resumed=False, epoch=0, step=0)

    def after_epoch(
        self,
        epoch: int,
        total_epochs: int | None,
        *,
        value: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> bool:
        """Save when `should_checkpoint` says so; call it after `log.epoch`. Returns whether it did.
        `value` is the plan's metric on the validation split."""
        if self._rank > 0:
            return False
        best = self._is_best(value)
        kept = should_checkpoint(epoch, total_epochs, self.every)
        self._epoch = epoch
        if not (kept or best):
            return False
        self.save(epoch, value=value, extra=extra, kept=kept)
        return True

    def save(
        self,
        epoch: int,
        *,
        done: bool = True,
        value: float | None = None,
        extra: Mapping[str, Any] | None = None,
        kept: bool = False,
    ) -> Path:
        """Save now and return the path of the weights.

        `done=False` is for the middle of an epoch; `extra` are plain values that the loop needs
        back, such as the running sum of a loss. A `kept` checkpoint is never removed. Raises
        RunError when the disk does not take it, UsageError when a part holds other than tensors and
        plain values.
        """
        weights = capture(self._model, "model")
        training = {
            "epoch": epoch,
            "step": self.step,
            "done": done,
            "extra": plain(dict(extra or {}), "extra"),
            "parts": {name: capture(part, name) for name, part in self._parts.items()},
            "random": random_state(),
        }
        best = self._is_best(value)
        name = f"epoch-{epoch:04d}" if done else f"epoch-{epoch:04d}-step-{self.step:08d}"
        described = {
            "epoch": epoch,
            "step": self.step,
            "done": done,
            "kept": kept,
            "value": _finite(value),
        }
        writers = {MODEL: _writer(weights), TRAINING: _writer(training)}
        self._log_saved(self._unlogged)
        saved = self._store.save(name, writers, described=described)
        if best:
            self._store.point(BEST, name)
        self._epoch = epoch if done else self._epoch
        # The row last: one that names a checkpoint which is not there would be a false statement.
        # The reverse, a checkpoint without its row, is made good by the next attempt.
        self._retain()
        self._log_saved(saved)
        return saved.folder / MODEL

    def finish(self) -> Path | None:
        """Log the best checkpoint, or the newest without values, as final; the path of its weights.
        The last epoch is saved first where it was not, its total being unknown."""
        self._log_saved(self._unlogged)
        newest = self._newest()
        if self._epoch >= 0 and (
            newest is None or (newest.epoch, newest.done) < (self._epoch, True)
        ):
            self.save(self._epoch, kept=True)
        chosen = self._best() or self._newest()
        if chosen is None or self._rank > 0:
            return None
        self._log.checkpoint_saved(chosen.folder / MODEL, epoch=chosen.epoch, final=True)
        return chosen.folder / MODEL

    def best_value(self) -> float | None:
        """The value of the best checkpoint; None while no finite value was given."""
        best = self._best()
        return None if best is None else best.value

    def _log_saved(self, saved: Saved | None) -> None:
        if saved is not None:
            self._log.checkpoint_saved(saved.folder / MODEL, epoch=saved.epoch)
        self._unlogged = None

    def _is_best(self, value: float | None) -> bool:
        if value is None:
            return False
        goal = self._goal_known()
        return goal is not None and goal.better(float(value), self.best_value())

    def _goal_known(self) -> Goal | None:
        """None where nobody says it: outside `harness train` the newest counts."""
        if self._goal is None and (self._log.registered or variables.METRIC in os.environ):
            self._goal = goal_from_environment()
        return self._goal

    def _best(self) -> Saved | None:
        best: Saved | None = None
        for saved in self._store.complete():
            goal = None if saved.value is None else self._goal_known()
            if goal is not None and goal.better(saved.value, best.value if best else None):
                best = saved
        return best

    def _newest(self) -> Saved | None:
        saved = self._store.complete()
        return saved[-1] if saved else None

    def _retain(self) -> None:
        """Remove what is neither due, nor best, nor newest."""
        best = self._best()
        for saved in self._store.complete()[:-1]:
            if not saved.kept and saved.folder != (best.folder if best else None):
                self._store.remove(saved)

    def _put_back(self, saved: Saved) -> Resumed:
        state = load(saved.folder / TRAINING)
        put_back(self._model, load(saved.folder / MODEL))
        missing = []
        for name, part in self._parts.items():
            held = state["parts"].get(name)
            if held is None or (name == "optimizer" and not held):
                missing.append(name)
            else:
                put_back(part, held)
        missing += [
            f"{name} (saved, not used here)" for name in state["parts"] if name not in self._parts
        ]
        missing += averages(self._model, *self._parts.values())
        missing += restore_random(state.get("random") or {})
        if not saved.done and (
            self._loader is not None and getattr(self._loader, "num_workers", 0) > 0
        ):
            missing.append("random numbers inside the loader's workers")
        if self._processes > 1:
            missing.append("random numbers of the other processes")
        if _on_gpu(self._model) and not torch.are_deterministic_algorithms_enabled():
            missing.append("order of sums on the GPU (torch.use_deterministic_algorithms is off)")
        self._log.resumed(missing)
        if missing:
            names = ", ".join(missing)
            warnings.warn(
                f"resumed from {saved.folder.name}, but not exactly: {names} not restored",
                stacklevel=3,
            )
        self.step = saved.step
        self._epoch = saved.epoch if saved.done else saved.epoch - 1
        if self._rank == 0:
            self._store.point(LATEST, saved.folder.name)
            self._unlogged = None if self._was_logged(saved) else saved
        first = saved.epoch + 1 if saved.done else saved.epoch
        return Resumed(
            resumed=True,
            epoch=first,
            step=saved.step,
            extra=state["extra"],
            missing=tuple(missing),
        )

    def _was_logged(self, saved: Saved) -> bool:
        path = f"{self._log.checkpoint_dir.name}/{saved.folder.name}/{MODEL}"
        rows = rows_in(self._log.checkpoint_dir.parent / "metrics.jsonl")
        return any(row.get("event") == "checkpoint" and row.get("path") == path for row in rows)


def _on_gpu(model: Any) -> bool:
    return any(
        parameter.device.type == "cuda" for parameter in getattr(model, "parameters", tuple)()
    )


def _writer(content: Any) -> Any:
    def write(path: Path) -> None:
        torch.save(content, path)

    return write


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and abs(float(value)) < float("inf") else None
