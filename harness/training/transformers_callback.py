"""Run logger and resume for transformers.Trainer and every trainer built on it, TRL's too.

    with RunLogger.from_environment() as log:
        trainer = Trainer(..., args=TrainingArguments(output_dir=str(log.checkpoint_dir), ...),
                          callbacks=[TransformersCallback(log)])
        trainer.train(resume_from_checkpoint=whole_checkpoint(log.checkpoint_dir))

The trainer's `logging_nan_inf_filter`, on by default, replaces a loss that is not finite by the
running mean, so that a broken run looks healthy. This callback switches it off.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import (
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from harness.clock import Clock
from harness.domain.statuses import Direction
from harness.errors import UsageError
from harness.run_logger import RunLogger
from harness.training.cadence import planned_direction
from harness.training.callback_rows import (
    Pace,
    measured,
    numbers,
)

_PARTS = {
    "optimizer": (
        "optimizer.pt",
        "optimizer.bin",
        "optimizer_0",
        "global_step*",
        "*/optimizer.pt",
    ),
    "scheduler": ("scheduler.pt", "global_step*"),
    "random numbers": ("rng_state*.pth",),
}
"""The files of each part that the trainer restores; a missing one it skips without a word."""
_STATE = "trainer_state.json"
"""The file that the trainer writes last into a checkpoint."""
_SUMMARY = "train_runtime"
"""A key of the report at the end; its means over the whole run are no point of a curve."""


class TransformersCallback(TrainerCallback):  # type: ignore[misc] # the library is not followed
    """One row a report of the trainer, one checkpoint row a save; the last (or best) checkpoint is
    marked as final.

    The run logger's epochs are epochs when `logging_strategy` is "epoch", else optimizer steps: the
    row of step 10 is epoch 9, and the plan's `checkpoint_every` counts steps. The callback starts
    the log; its owner ends it. Raises UsageError when checkpoints would lie outside the run's
    folder.
    """

    def __init__(self, log: RunLogger, *, clock: Clock | None = None) -> None:
        self._log = log
        self._pace = Pace(clock)
        self._begun = self._resumed = False
        self._by_epoch = False
        self._saved: tuple[Path, int] | None = None

    def on_init_end(
        self, args: TrainingArguments, _state: TrainerState, _control: TrainerControl, **_more: Any
    ) -> None:
        args.logging_nan_inf_filter = False

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, _control: TrainerControl, **_more: Any
    ) -> None:
        # Again: a callback that is added later gets no on_init_end.
        args.logging_nan_inf_filter = False
        self._by_epoch = args.logging_strategy == "epoch"
        if args.save_strategy != "no":
            _require_inside(Path(args.output_dir), self._log.checkpoint_dir)
            _keep_best_and_newest(args)
        self._resumed = state.global_step > 0
        if self._resumed and (kept := _checkpoint_of(args, state.global_step)).is_dir():
            # A kill between its save and its row left it untold; after the last step it is the one
            # that counts.
            self._saved = kept, self._number(state)
        if not self._begun:
            total = math.ceil(args.num_train_epochs) if self._by_epoch else state.max_steps
            resumed_at = None if state.global_step == 0 else self._next(state)
            if resumed_at is not None:
                self._log.resumed(not_restored(args, state.global_step))
            self._log.start(total, args.to_sanitized_dict(), resumed_at=resumed_at)
            self._begun = True
        self._pace.restart(state.global_step)

    def on_log(
        self,
        _args: TrainingArguments,
        state: TrainerState,
        _control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **_more: Any,
    ) -> None:
        metrics = numbers(logs or {})
        metrics.pop("epoch", None)
        rate = metrics.pop("learning_rate", None)
        if _SUMMARY in metrics:
            if self._resumed:
                # The trainer divides the sum since the resume by all steps: wrong, so not logged.
                metrics.pop("train_loss", None)
            metrics = {f"summary/{name}": value for name, value in metrics.items()}
        elif "loss" in metrics:
            metrics |= measured(self._pace, state.global_step)
        if metrics:
            step = state.global_step
            self._log.epoch(self._number(state), metrics, step=step, learning_rate=rate)

    def on_step_end(
        self, _args: TrainingArguments, state: TrainerState, control: TrainerControl, **_more: Any
    ) -> TrainerControl:
        if not self._by_epoch:
            self._ask_for_checkpoint(state, control)
        return control

    def on_epoch_end(
        self, _args: TrainingArguments, state: TrainerState, control: TrainerControl, **_more: Any
    ) -> TrainerControl:
        if self._by_epoch:
            self._ask_for_checkpoint(state, control)
        return control

    def on_evaluate(
        self, _args: TrainingArguments, state: TrainerState, _control: TrainerControl, **_more: Any
    ) -> None:
        self._pace.restart(state.global_step)

    def on_save(
        self, args: TrainingArguments, state: TrainerState, _control: TrainerControl, **_more: Any
    ) -> None:
        self._pace.restart(state.global_step)
        path = _checkpoint_of(args, state.global_step)
        number = self._number(state)
        # The last step of an epoch may be saved twice.
        if path.is_dir() and self._saved != (path, number):
            self._saved = path, number
            self._log.checkpoint_saved(path, epoch=number)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, _control: TrainerControl, **_more: Any
    ) -> None:
        path, epoch = self._saved or (None, 0)
        if args.load_best_model_at_end and state.best_model_checkpoint is not None:
            path = Path(state.best_model_checkpoint)
            if not self._by_epoch:
                epoch = max(0, (state.best_global_step or state.global_step) - 1)
            elif (epochs := epochs_of(path)) is not None:
                epoch = max(0, math.ceil(epochs) - 1)
        if path is not None and path.is_dir():
            self._log.checkpoint_saved(path, epoch=epoch, final=True)

    def _ask_for_checkpoint(self, state: TrainerState, control: TrainerControl) -> None:
        every = self._log.checkpoint_every
        if every and (self._number(state) + 1) % every == 0:
            control.should_save = True

    def _number(self, state: TrainerState) -> int:
        """The row's epoch, from 0; when steps are counted, the last step that is done, from 0."""
        done = math.ceil(state.epoch or 0) if self._by_epoch else state.global_step
        return max(0, done - 1)

    def _next(self, state: TrainerState) -> int:
        return int(state.epoch or 0) if self._by_epoch else int(state.global_step)


def _checkpoint_of(args: Any, step: int) -> Path:
    return Path(args.output_dir) / f"checkpoint-{step}"


def _keep_best_and_newest(args: TrainingArguments) -> None:
    """Keep the newest checkpoint beside the best, and require the plan's direction."""
    if args.metric_for_best_model is None:
        return
    # With a limit of 1 the trainer ends by removing all but the best: the newest, too, of which a
    # row was logged.
    if args.save_total_limit == 1:
        args.save_total_limit = 2
    direction = planned_direction(args.metric_for_best_model)
    if direction is not None and args.greater_is_better != (direction is Direction.MAXIMIZE):
        raise UsageError(
            f"metric_for_best_model is {args.metric_for_best_model!r} with"
            f" greater_is_better={args.greater_is_better}; the plan says {direction}: the worst"
            " checkpoint would be kept as the best.",
            hint=f"Pass greater_is_better={direction is Direction.MAXIMIZE}.",
            code="direction_differs",
        )


def _require_inside(output: Path, folder: Path) -> None:
    """Checkpoints are looked for, and kept, in the run's folder only."""
    if not output.resolve().is_relative_to(folder.resolve().parent):
        raise UsageError(
            f"TrainingArguments.output_dir is {output}; expected a folder below {folder}, where"
            " this run's checkpoints belong.",
            hint='Pass output_dir=str(log.checkpoint_dir), or save_strategy="no".',
            code="checkpoint_outside",
        )


def not_restored(args: Any, step: int) -> list[str]:
    """Names of the parts that a trainer did not restore when it resumed at `step`."""
    folder = _checkpoint_of(args, step)
    if not folder.is_dir():
        return [f"the checkpoint of step {step} (it is not in output_dir)"]
    missing = [
        name for name, files in _PARTS.items() if not any(any(folder.glob(file)) for file in files)
    ]
    if args.ignore_data_skip:
        missing.append("data order (ignore_data_skip)")
    if args.dataloader_num_workers > 0:
        missing.append("random numbers inside the loader's workers")
    if args.device.type == "cuda" and not args.full_determinism:
        missing.append("order of sums on the GPU (full_determinism is off)")
    return missing


def epochs_of(checkpoint: Path) -> float | None:
    """Epochs that `checkpoint` has seen, by the trainer's state in it; None when unreadable."""
    try:
        epochs = json.loads((checkpoint / _STATE).read_text("utf-8"))["epoch"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return epochs if isinstance(epochs, int | float) else None


def whole_checkpoint(folder: Path) -> str | None:
    """The newest complete `checkpoint-N` in `folder`; None without any."""
    # transformers' own `get_last_checkpoint` takes the highest number, even of a killed save.
    checkpoints = []
    for state in folder.glob(f"checkpoint-*/{_STATE}"):
        number = state.parent.name.removeprefix("checkpoint-")
        try:
            step = json.loads(state.read_text("utf-8"))["global_step"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if number == str(step):
            checkpoints.append((step, state.parent))
    return str(max(checkpoints)[1]) if checkpoints else None
