"""Checkpointer: saves what a training needs to go on to the last bit, and puts it back.

    with RunLogger.from_environment() as log:
        keeper = Checkpointer(log, model=model, optimizer=optimizer, scheduler=scheduler,
        loader=loader) at = keeper.resume() log.start(epochs, config, resumed_at=at.epoch if
        at.resumed else None) for epoch in range(at.epoch, epochs):
            ...
            log.epoch(epoch, {"loss": loss, "accuracy": accuracy})
            keeper.after_epoch(epoch, epochs, value=accuracy)
        keeper.finish()

A checkpoint is a folder: model.pt, what `predict` loads and the run logger is told of, and
training.pt, all the rest.
"""

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from harness.artifacts.metrics_file import read_rows
from harness.run_logger import RunLogger
from harness.training.cadence import Goal, goal_from_environment, should_checkpoint
from harness.training.state import capture, load, plain, put_back, random_state, restore_random
from harness.training.store import BEST, LATEST, Saved, Store

MODEL, TRAINING = "model.pt", "training.pt"


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """Where the training goes on."""

    resumed: bool
    epoch: int
    """The first epoch to train; it has begun already when the checkpoint was saved in its
    middle."""
    step: int
    """Optimizer steps that are done."""
    extra: dict[str, Any] = field(default_factory=dict)
    """What was handed to the save."""
    missing: tuple[str, ...] = ()
    """Parts that could not be put back, by name."""

    @property
    def exact(self) -> bool:
        """Whether the training goes on as if it had never stopped."""
        return not self.missing


class Checkpointer:
    """Keeps the newest checkpoint, the best one, and those that the plan's cadence asks for;
    removes the others.

    Args:
        model, optimizer, scheduler, scaler, loader: with `state_dict` and `load_state_dict`; those
        that are used. more: further parts by name: modules, optimizers, `torch.Generator`s,
        `numpy.random.Generator`s. every: epochs, by default the plan's `training.checkpoint_every`.
        goal: the metric that decides about the best, by default the plan's; asked for when a value
        is given.

    Of several processes (RANK, WORLD_SIZE) the first saves; all of them resume, but the others'
    random numbers are not in the checkpoint, and that is said.
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
        given = {"optimizer": optimizer, "scheduler": scheduler, "scaler": scaler, "loader": loader}
        self._parts = {name: part for name, part in given.items() if part is not None} | dict(
            more or {}
        )
        self._rank, self._processes = (
            int(os.environ.get("RANK") or 0),
            int(os.environ.get("WORLD_SIZE") or 1),
        )
        self.every = every or log.checkpoint_every or 10
        self.step = 0
        """Optimizer steps so far, where the loop counts them here."""
        self._store = Store(log.checkpoint_dir)
        self._epoch = -1
        self._untold: Saved | None = None

    def resume(self) -> Resumed:
        """Put the newest whole checkpoint back, if there is one; call it before `log.start`.

        A checkpoint with wrong bytes is passed over for the one before it. A part that is missing
        is named in a warning, in `missing`, and in a row of the run, so that watchers and gates say
        it. Raises UsageError when one holds other than plain types, or the data is another.
        """
        if self._rank == 0:
            self._store.sweep()
        for saved in reversed(self._store.complete()):
            problem = saved.problem()
            if problem is None:
                return self._put_back(saved)
            warnings.warn(f"checkpoint {saved.folder.name} is passed over: {problem}", stacklevel=2)
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

        `value` is the plan's metric on the validation split. The last epoch is saved also when it
        is neither best nor due, so that `finish` finds it.
        """
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
        """Save now and return the path of the weights. `done=False` is for the middle of an epoch;
        `extra` are plain values that the loop needs back, such as the running sum of a loss.
        `kept`: never removed.

        Raises RunError when the disk does not take it (older checkpoints are as they were),
        UsageError when a part holds what is no tensor and no plain value.
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
        told = {
            "epoch": epoch,
            "step": self.step,
            "done": done,
            "kept": kept,
            "value": _finite(value),
        }
        writers = {MODEL: _writer(weights), TRAINING: _writer(training)}
        self._tell(self._untold)
        saved = self._store.save(name, writers, told=told)
        if best:
            self._store.point(BEST, name)
        self._epoch = epoch if done else self._epoch
        self._retain()
        self._tell(saved)
        return saved.folder / MODEL

    def finish(self) -> Path | None:
        """Mark the best checkpoint, or the newest where no value was given, as the one to score;
        its weights' path.

        Where the last epoch was not saved (its end was not known beforehand), it is saved first.
        None without any.
        """
        self._tell(self._untold)
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
        """Of the best checkpoint; None while no finite value was given."""
        best = self._best()
        return None if best is None else best.value

    def _tell(self, saved: Saved | None) -> None:
        if saved is not None:
            self._log.checkpoint_saved(saved.folder / MODEL, epoch=saved.epoch)
        self._untold = None

    def _is_best(self, value: float | None) -> bool:
        if value is None:
            return False
        return self._goal_known().better(float(value), self.best_value())

    def _goal_known(self) -> Goal:
        self._goal = self._goal or goal_from_environment()
        return self._goal

    def _best(self) -> Saved | None:
        best: Saved | None = None
        for saved in self._store.complete():
            if saved.value is not None and self._goal_known().better(
                saved.value, best.value if best else None
            ):
                best = saved
        return best

    def _newest(self) -> Saved | None:
        found = self._store.complete()
        return found[-1] if found else None

    def _retain(self) -> None:
        """Remove what is neither due, nor best, nor newest."""
        found, best = self._store.complete(), self._best()
        for saved in found[:-1]:
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
            told = ", ".join(missing)
            warnings.warn(
                f"resumed from {saved.folder.name}, but not exactly: {told} not restored",
                stacklevel=3,
            )
        self.step = saved.step
        self._epoch = saved.epoch if saved.done else saved.epoch - 1
        if self._rank == 0:
            self._store.point(LATEST, saved.folder.name)
            self._untold = (
                None if self._was_told(saved) else saved
            )  # killed between the save and its row
        first = saved.epoch + 1 if saved.done else saved.epoch
        return Resumed(
            resumed=True, epoch=first, step=saved.step, extra=state["extra"], missing=tuple(missing)
        )

    def _was_told(self, saved: Saved) -> bool:
        path = f"{self._log.checkpoint_dir.name}/{saved.folder.name}/{MODEL}"
        rows = read_rows(self._log.checkpoint_dir.parent / "metrics.jsonl").rows
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
