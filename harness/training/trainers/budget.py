"""The token and minute budget of a training, the count of real tokens, and marks on checkpoints
that are whole."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from harness.clock import Clock
from harness.domain import variables
from harness.files import atomic_write, pretty_json, walk_files

MARK = "harness.json"
"""In a checkpoint's folder, written when all the rest is there: one without it was cut off by a
kill."""


@dataclass(frozen=True, kw_only=True)
class Spent:
    tokens: int
    seconds: float

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "Spent":
        """What the harness says that earlier attempts of the run took; nothing where it says
        nothing."""
        tokens = int(environ.get(variables.SPENT_TOKENS) or 0)
        return cls(tokens=tokens, seconds=float(environ.get(variables.SPENT_SECONDS) or 0.0))


class Budget(TrainerCallback):  # type: ignore[misc] # the library is not followed
    """Stops the training before a budget is passed; `tokens` counts what gradients are computed
    for.

    A token counts when it goes through the model in training, without padding: generation, a
    reference pass and what gradient checkpointing computes again do not. It stops while the largest
    step so far would still fit, and with twice the longest step left for saving. It stands before
    the logging callback, whose rows then hold `tokens_seen`.

    Args:
        tokens, minutes: the budget; `began` is the clock's reading when the program started.
        identity: what a checkpoint must have been made from to be gone on with (hashes of
        specification and data). spent: what earlier attempts of the run took of both budgets, steps
        that are repeated now included.
    """

    def __init__(
        self,
        *,
        tokens: int,
        minutes: float,
        clock: Clock,
        began: float,
        identity: Mapping[str, str],
        spent: Spent | None = None,
    ) -> None:
        self._most_tokens, self._most_seconds = tokens, minutes * 60
        self._spent = spent or Spent(tokens=0, seconds=0.0)
        self._clock, self._began, self._earlier = clock, began, self._spent.seconds
        self._identity = dict(identity)
        self.repeated = self._spent.tokens
        """Tokens that earlier attempts saw and this one sees again, or lost."""
        self.tokens = 0
        self.stopped: str | None = None
        """Which budget ended the training: "tokens" or "minutes"."""
        self._at = Spent(tokens=0, seconds=0.0)
        self._largest = Spent(tokens=0, seconds=0.0)

    def watch(self, model: torch.nn.Module) -> None:
        """Count the tokens of each forward pass of `model` that gradients are computed for."""
        model.register_forward_pre_hook(self._count, with_kwargs=True)

    def take_up(self, checkpoint: Path) -> None:
        """Go on from what had been used when `checkpoint` was saved."""
        mark = read_mark(checkpoint)
        self.tokens = int(mark["tokens"])
        self.repeated = max(0, self._spent.tokens - self.tokens)
        self._earlier = max(self._spent.seconds, float(mark["seconds"]))
        self._largest = Spent(
            tokens=int(mark["largest_tokens"]), seconds=float(mark["largest_seconds"])
        )

    @property
    def seconds(self) -> float:
        """Of this run, earlier attempts that it goes on from included."""
        return self._earlier + self._clock.monotonic() - self._began

    @property
    def _used(self) -> int:
        return self.tokens + self.repeated

    def on_step_begin(
        self, _args: TrainingArguments, _state: TrainerState, _control: TrainerControl, **_more: Any
    ) -> None:
        self._at = Spent(tokens=self.tokens, seconds=self.seconds)

    def on_substep_end(
        self, _args: TrainingArguments, _state: TrainerState, control: TrainerControl, **_more: Any
    ) -> None:
        self._stop_if(
            control,
            tokens=self._used > self._most_tokens,
            minutes=self.seconds > self._most_seconds,
        )

    def on_step_end(
        self, _args: TrainingArguments, _state: TrainerState, control: TrainerControl, **_more: Any
    ) -> None:
        self._largest = Spent(
            tokens=max(self._largest.tokens, self.tokens - self._at.tokens),
            seconds=max(self._largest.seconds, self.seconds - self._at.seconds),
        )
        self._stop_if(
            control,
            tokens=self._used + self._largest.tokens > self._most_tokens,
            minutes=self.seconds + 3 * self._largest.seconds > self._most_seconds,
        )

    def on_log(
        self,
        _args: TrainingArguments,
        _state: TrainerState,
        _control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_more: Any,
    ) -> None:
        if logs is not None:
            logs.pop(
                "num_tokens", None
            )  # TRL's own count, which begins at 0 again where a training goes on
            logs["tokens_seen"] = self.tokens

    def on_save(
        self, args: TrainingArguments, state: TrainerState, _control: TrainerControl, **_more: Any
    ) -> None:
        largest = {"largest_tokens": self._largest.tokens, "largest_seconds": self._largest.seconds}
        mark = self._identity | {"tokens": self.tokens, "seconds": self.seconds} | largest
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        for path in walk_files(folder):  # the mark says that all is there, after a power cut, too
            if path.is_file():
                with path.open("rb") as stream:
                    os.fsync(stream.fileno())
        atomic_write(folder / MARK, pretty_json(mark))

    def _stop_if(self, control: TrainerControl, **passed: bool) -> None:
        for name, is_passed in passed.items():
            if is_passed:
                self.stopped = self.stopped or name
                control.should_training_stop = True

    def _count(
        self, _module: torch.nn.Module, given: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        if not torch.is_grad_enabled():
            return
        ids = named["input_ids"] if "input_ids" in named else given[0]
        mask = named.get("attention_mask")
        self.tokens += int(ids.numel() if mask is None else mask.sum())


def read_mark(checkpoint: Path) -> dict[str, Any]:
    """What `on_save` wrote; empty for a checkpoint that is not whole."""
    try:
        found = json.loads((checkpoint / MARK).read_text("utf-8"))
    except (OSError, ValueError):  # cut off: it is passed over
        return {}
    return found if isinstance(found, dict) else {}


def newest_checkpoint(folder: Path, identity: Mapping[str, str]) -> Path | None:
    """The last whole checkpoint of the same specification and data."""
    found = [
        path for path in folder.glob("checkpoint-*") if identity.items() <= read_mark(path).items()
    ]
    return max(found, key=step_of, default=None)


def step_of(checkpoint: Path) -> int:
    """The optimizer step after which transformers saved it."""
    return int(checkpoint.name.rpartition("-")[2])
