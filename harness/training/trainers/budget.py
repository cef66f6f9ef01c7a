"""The token and minute budget of a training, and marks on checkpoints that are complete."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from harness.clock import Clock
from harness.domain import variables
from harness.files import (
    atomic_write,
    pretty_json,
    walk_files,
)
from harness.training import processes

MARK = "harness.json"
"""In a checkpoint's folder, written last: a checkpoint without it was cut off by a kill."""


@dataclass(frozen=True, kw_only=True)
class SpentBudget:
    tokens: int
    seconds: float

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "SpentBudget":
        """What earlier attempts of the run spent, as the harness passes it on."""
        tokens = int(environ.get(variables.SPENT_TOKENS) or 0)
        return cls(tokens=tokens, seconds=float(environ.get(variables.SPENT_SECONDS) or 0.0))


class TrainingBudget(TrainerCallback):  # type: ignore[misc] # the library is not followed
    """Stops the training before a budget is passed; `tokens` counts tokens with gradients.

    Padding, generation, reference passes and what gradient checkpointing recomputes do not count.
    The training stops when the largest step so far would no longer fit, and keeps twice the longest
    step's time for saving. Add it before the logging callback, whose rows then hold `tokens_seen`.

    Args:
        tokens, minutes: the budget.
        began: the clock's monotonic reading when the program started.
        identity: hashes that a checkpoint must carry to be continued from.
        spent: what earlier attempts of the run spent, steps that are repeated now included.
    """

    def __init__(
        self,
        *,
        tokens: int,
        minutes: float,
        clock: Clock,
        began: float,
        identity: Mapping[str, str],
        spent: SpentBudget | None = None,
    ) -> None:
        self._most_tokens, self._most_seconds = tokens, minutes * 60
        self._spent = spent or SpentBudget(tokens=0, seconds=0.0)
        self._clock, self._began, self._earlier = clock, began, self._spent.seconds
        self._identity = dict(identity)
        self.repeated = self._spent.tokens
        """Tokens of earlier attempts whose steps were lost or are repeated."""
        self._tokens = self._counted = 0
        self.stopped: str | None = None
        """The budget that ended the training: "tokens" or "minutes"."""
        self._at = SpentBudget(tokens=0, seconds=0.0)
        self._largest = SpentBudget(tokens=0, seconds=0.0)

    @property
    def tokens(self) -> int:
        """Of all processes, up to the last micro-batch; of this one, to now."""
        return self._tokens + self._counted

    def watch(self, model: torch.nn.Module) -> None:
        """Count the tokens of each forward pass of `model` that gradients are computed for."""
        model.register_forward_pre_hook(self._count, with_kwargs=True)

    def take_up(self, checkpoint: Path) -> None:
        """Continue from what was spent when `checkpoint` was saved."""
        mark = read_mark(checkpoint)
        self._tokens, self._counted = int(mark["tokens"]), 0
        self.repeated = max(0, self._spent.tokens - self.tokens)
        self._earlier = max(self._spent.seconds, float(mark["seconds"]))
        self._largest = SpentBudget(
            tokens=int(mark["largest_tokens"]), seconds=float(mark["largest_seconds"])
        )

    @property
    def seconds(self) -> float:
        """Seconds of this run, with the earlier attempts that it continues."""
        return self._earlier + self._clock.monotonic() - self._began

    @property
    def _used(self) -> int:
        return self.tokens + self.repeated

    def on_step_begin(
        self,
        _args: TrainingArguments,
        _state: TrainerState,
        _control: TrainerControl,
        **_more: Any,
    ) -> None:
        self._at = SpentBudget(tokens=self.tokens, seconds=self.seconds)

    def on_substep_end(
        self, _args: TrainingArguments, _state: TrainerState, control: TrainerControl, **_more: Any
    ) -> None:
        seconds, _ = self._of_all(0.0)
        self._stop_if(
            control,
            tokens=self._used > self._most_tokens,
            minutes=seconds > self._most_seconds,
        )

    def on_step_end(
        self, _args: TrainingArguments, _state: TrainerState, control: TrainerControl, **_more: Any
    ) -> None:
        seconds, longest = self._of_all(self.seconds - self._at.seconds)
        self._largest = SpentBudget(
            tokens=max(self._largest.tokens, self.tokens - self._at.tokens),
            seconds=max(self._largest.seconds, longest),
        )
        self._stop_if(
            control,
            tokens=self._used + self._largest.tokens > self._most_tokens,
            # One more step, and twice its time to save adapter and result.
            minutes=seconds + 3 * self._largest.seconds > self._most_seconds,
        )

    def _of_all(self, step: float) -> tuple[float, float]:
        """Seconds of the run and of the step, the most of any process; `tokens` are then those of
        all. All stop together, or none."""
        told = processes.gathered((self._counted, self.seconds, step))
        self._tokens, self._counted = self._tokens + sum(one[0] for one in told), 0
        return max(one[1] for one in told), max(one[2] for one in told)

    def on_log(
        self,
        _args: TrainingArguments,
        _state: TrainerState,
        _control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_more: Any,
    ) -> None:
        if logs is not None:
            # TRL's own count starts at 0 again after a resume.
            logs.pop("num_tokens", None)
            logs["tokens_seen"] = self.tokens

    def on_save(
        self, args: TrainingArguments, state: TrainerState, _control: TrainerControl, **_more: Any
    ) -> None:
        largest = {
            "largest_tokens": self._largest.tokens,
            "largest_seconds": self._largest.seconds,
        }
        mark = self._identity | {"tokens": self.tokens, "seconds": self.seconds} | largest
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        processes.wait()  # each has written its own random state
        if processes.rank() > 0:
            return
        # First all files to the disk, then the mark: it must be true after a power cut, too.
        for path in walk_files(folder):
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
        self, _module: torch.nn.Module, positional: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        # Generation and reference passes run without gradients. Gradient checkpointing recomputes
        # layers, not the whole model, so this hook does not see it.
        if not torch.is_grad_enabled():
            return
        ids = named["input_ids"] if "input_ids" in named else positional[0]
        mask = named.get("attention_mask")
        self._counted += int(ids.numel() if mask is None else mask.sum())


def read_mark(checkpoint: Path) -> dict[str, Any]:
    """What `on_save` wrote; empty for an incomplete checkpoint."""
    try:
        mark = json.loads((checkpoint / MARK).read_text("utf-8"))
    except (OSError, ValueError):  # cut off: it is passed over
        return {}
    return mark if isinstance(mark, dict) else {}


def newest_checkpoint(folder: Path, identity: Mapping[str, str]) -> Path | None:
    """The last complete checkpoint of the same specification and data."""
    checkpoints = [
        path for path in folder.glob("checkpoint-*") if identity.items() <= read_mark(path).items()
    ]
    return max(checkpoints, key=step_of, default=None)


def step_of(checkpoint: Path) -> int:
    """The optimizer step after which transformers saved it."""
    return int(checkpoint.name.rpartition("-")[2])
