"""The largest micro-batch that a GPU's memory holds. A step's rows stay those of the specification,
`batch_size` times `gradient_accumulation`: only how many of them are computed at once is found.
"""

import copy
import gc
from collections import Counter
from collections.abc import (
    Callable,
    Iterator,
)
from dataclasses import (
    dataclass,
    replace,
)
from functools import partial
from typing import Any

import torch
from transformers import set_seed

from harness.files import canonical_json
from harness.training import processes
from harness.training.language_model import CPU_TIER
from harness.training.trainers.task import TrainingTask

MODES = ("orpo", "dpo", "sft")
"""Whose steps are the rows of the dataset; where rollouts are made, they take the time."""
_SHARE = 0.8
"""Of the memory that is free at the start."""
Fits = Callable[[Callable[[], Any]], bool]
"""Trains one step with the trainer that is built, and says whether memory held it."""


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    rows: int
    accumulation: int
    checkpointing: bool
    """Whether activations are computed again in the backward pass: less memory, a third more
    work."""

    def arguments(self) -> dict[str, Any]:
        return {
            "per_device_train_batch_size": self.rows,
            "gradient_accumulation_steps": self.accumulation,
            "gradient_checkpointing": self.checkpointing,
        }

    def told(self) -> dict[str, float | str]:
        return {
            "micro_batch": self.rows,
            "micro_batches": self.accumulation,
            "gradient_checkpointing": "on" if self.checkpointing else "off",
        }


def choices(rows: int) -> Iterator[MicroBatch]:
    """All that make a step of `rows`, the fastest first."""
    for checkpointing in (False, True):
        for size in range(rows, 0, -1):
            if rows % size == 0:
                count = rows // size
                yield MicroBatch(rows=size, accumulation=count, checkpointing=checkpointing)


def fitted(
    task: TrainingTask, build: Callable[[TrainingTask], Any], fits: Fits | None = None
) -> Any:
    """`build` of `task`, with the fastest micro-batch of which one step fits, tried on the longest
    rows. On the CPU tier, where rollouts are made, and in several processes, what the specification
    says is taken."""
    if fits is None and task.spec["hardware_tier"] == CPU_TIER:
        return build(task)
    # Of several processes one that ran out of memory would leave the others waiting.
    if task.spec["mode"] not in MODES or processes.count() > 1:
        return build(task)
    numbers = task.spec.hyperparameters
    found = None
    for found in choices(int(numbers["batch_size"] * numbers["gradient_accumulation"])):
        small = _trial(task, found)
        if (fits or _memory_holds)(partial(build, small)):
            break
    assert found is not None
    task.settings |= found.arguments()
    task.extra |= found.told()
    set_seed(task.spec.seed)  # as if nothing had been tried
    return build(task)


def _trial(task: TrainingTask, micro: MicroBatch) -> TrainingTask:
    """One micro-batch of the longest rows."""
    given = task.rows
    longest = sorted(given.rows, key=lambda row: -len(canonical_json(row)))[: micro.rows]
    several = -(-micro.rows // max(1, len(longest)))
    small = copy.copy(task)
    small.rows = replace(given, rows=(longest * several)[: micro.rows])
    small.refused, small.extra = Counter(), {}
    small.settings = micro.arguments() | {
        "gradient_accumulation_steps": 1,
        "max_steps": 1,
        "save_strategy": "no",
    }
    return small


def _memory_holds(make: Callable[[], Any]) -> bool:
    free, _ = torch.cuda.mem_get_info()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved()
    try:
        make().train()
        held = torch.cuda.max_memory_reserved() - before
    except torch.OutOfMemoryError:
        held = free
    gc.collect()
    torch.cuda.empty_cache()
    return held <= _SHARE * free
