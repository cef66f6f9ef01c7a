"""transformers.Trainer, and every trainer built on it (TRL's too), logs to the run logger through
this callback.

    with RunLogger.from_environment() as log:
        Trainer(..., args=TrainingArguments(output_dir=str(log.checkpoint_dir), ...),
                callbacks=[RunLoggerCallback(log)]).train()

The trainer's `logging_nan_inf_filter` replaces a loss that is not finite by the running mean, so
that a broken run looks like a healthy one; it is on by default, and this callback switches it off.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from harness.clock import Clock
from harness.domain.statuses import Direction
from harness.errors import UsageError
from harness.run_logger import RunLogger
from harness.training.hf_resume import epochs_of, not_restored
from harness.training.reports import Pace, measured, numbers, planned_direction

_SUMMARY = "train_runtime"
"""A key of the one report at the end, whose means over the whole run are no point of any curve."""


class RunLoggerCallback(TrainerCallback):  # type: ignore[misc] # the library is not followed
    """One row a report of the trainer, a checkpoint row a save, the last (or best) checkpoint
    marked as final.

    What the run logger counts as epochs are epochs where `logging_strategy` is "epoch", else
    optimizer steps: the row of step 10 is epoch 9, and the plan's `checkpoint_every` then counts
    steps. The callback starts the log; whoever made it ends it. Raises UsageError when checkpoints
    would lie outside the run's folder.
    """

    def __init__(self, log: RunLogger, *, clock: Clock | None = None) -> None:
        self._log = log
        self._pace = Pace(clock)
        self._begun = self._went_on = False
        self._by_epoch = False
        self._saved: tuple[Path, int] | None = None

    def on_init_end(
        self, args: TrainingArguments, _state: TrainerState, _control: TrainerControl, **_more: Any
    ) -> None:
        args.logging_nan_inf_filter = False

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, _control: TrainerControl, **_more: Any
    ) -> None:
        args.logging_nan_inf_filter = (
            False  # again: a callback that is added later sees no on_init_end
        )
        self._by_epoch = args.logging_strategy == "epoch"
        if args.save_strategy != "no":
            _require_inside(Path(args.output_dir), self._log.checkpoint_dir)
            _keep_best_and_newest(args)
        self._went_on = state.global_step > 0
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
        found = numbers(logs or {})
        found.pop("epoch", None)
        rate = found.pop("learning_rate", None)
        if _SUMMARY in found:
            if self._went_on:
                found.pop("train_loss", None)  # the sum since the resume, divided by all steps
            found = {f"summary/{name}": value for name, value in found.items()}
        elif "loss" in found:
            found |= measured(self._pace, state.global_step)
        if found:
            self._log.epoch(self._number(state), found, step=state.global_step, learning_rate=rate)

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
        path = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        number = self._number(state)
        if path.is_dir() and self._saved != (
            path,
            number,
        ):  # the last step of an epoch may be saved twice
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
        """The epoch that the row belongs to, from 0; in steps, the step before the one that comes
        next."""
        done = math.ceil(state.epoch or 0) if self._by_epoch else state.global_step
        return max(0, done - 1)

    def _next(self, state: TrainerState) -> int:
        return int(state.epoch or 0) if self._by_epoch else int(state.global_step)


def _keep_best_and_newest(args: TrainingArguments) -> None:
    """With a limit of 1 the trainer ends by removing each checkpoint but its best, the newest too,
    which was told of; and what it takes for the best must be the best by the plan."""
    if args.metric_for_best_model is None:
        return
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
    """The run's folder is where checkpoints are looked for, and what is kept of them counts."""
    if not output.resolve().is_relative_to(folder.resolve().parent):
        raise UsageError(
            f"TrainingArguments.output_dir is {output}; expected a folder below {folder}, where"
            " checkpoints of this run are looked for.",
            hint='Pass output_dir=str(log.checkpoint_dir), or save_strategy="no".',
            code="checkpoint_outside",
        )
