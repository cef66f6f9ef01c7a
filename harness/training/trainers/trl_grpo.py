"""Backend `trl-grpo`: group relative policy optimisation (Shao et al. 2024) by TRL, with LoRA.

Two rewards: 1 where the completion is the answer, and 0.5 where it contains it. A group whose
rewards are all equal teaches nothing: watch `frac_reward_zero_std`, not the loss, which is near 0
by construction.
"""

import sys
from typing import Any

from datasets import Dataset
from trl import (
    GRPOConfig,
    GRPOTrainer,
)

from harness.errors import UsageError
from harness.training.chat import (
    RowRefusedError,
    messages,
    prompt_ids,
)
from harness.training.rewards import (
    contains,
    exact_match,
)
from harness.training.trainers.program import run
from harness.training.trainers.task import TrainingTask

MOST_GENERATED = 256
GROUPS = (8, 4, 2)
"""Completions a prompt: the first that divides a step's rows."""


def group_size(rows: int) -> int:
    """Raises UsageError where a step has a single row: a group needs two."""
    for size in GROUPS:
        if rows % size == 0:
            return size
    raise UsageError(
        f"A step has {rows} rows (batch_size times gradient_accumulation); a group of completions"
        " needs an even number.",
        hint="Make their product even.",
        code="group_too_small",
    )


def build(task: TrainingTask) -> Any:
    numbers, limit = task.spec.hyperparameters, task.spec.max_length
    generated = max(1, min(MOST_GENERATED, limit // 2))

    def encode(row: dict[str, Any]) -> dict[str, Any]:
        if len(prompt_ids(task.tokenizer, row["prompt"])) + generated > limit:
            raise RowRefusedError("prompt_too_long")
        return {"prompt": messages(row["prompt"]), "answer": row["answer"]}

    rows = task.each(encode)
    settings = task.arguments(
        beta=numbers["beta"],
        num_generations=group_size(numbers["batch_size"] * numbers["gradient_accumulation"]),
        max_completion_length=generated,
        reward_weights=[1.0, 0.5],
        temperature=1.0,
    )
    return GRPOTrainer(
        model=task.model(),
        reward_funcs=[exact_match, contains],
        args=GRPOConfig(**settings),
        train_dataset=Dataset.from_list(rows),
        processing_class=task.tokenizer,
        peft_config=task.lora(),
    )


if __name__ == "__main__":
    sys.exit(run("trl-grpo", "grpo", ("prompt", "answer"), build))
