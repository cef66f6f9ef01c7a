"""Backend `trl-grpo`: group relative policy optimisation (Shao et al. 2024) by TRL, with LoRA;
answers are checked.

Two rewards: 1 where the completion is the answer, and half of that where it contains it. A group
whose rewards are all equal teaches nothing: watch `frac_reward_zero_std`, not the loss, which is
near 0 by construction.
"""

import sys
from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from harness.errors import UsageError
from harness.training.answers import contains_answer, is_answer
from harness.training.chat import RowRefusedError, messages, prompt_ids
from harness.training.language_model import load_model
from harness.training.trainers.job import Job
from harness.training.trainers.program import run

MOST_GENERATED = 256
GROUPS = (8, 4, 2)
"""Completions a prompt; the largest that divides a step's rows is taken."""


def exact_match(completions: Sequence[Any], answer: Sequence[str], **_more: Any) -> list[float]:
    return [
        float(is_answer(_text(said), right))
        for said, right in zip(completions, answer, strict=True)
    ]


def contains(completions: Sequence[Any], answer: Sequence[str], **_more: Any) -> list[float]:
    return [
        float(contains_answer(_text(said), right))
        for said, right in zip(completions, answer, strict=True)
    ]


def _text(completion: Any) -> str:
    return str(completion if isinstance(completion, str) else completion[-1]["content"])


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


def build(job: Job) -> Any:
    spec, given = job.spec, job.spec.hyperparameters
    generated = max(1, min(MOST_GENERATED, spec.max_length // 2))

    def encode(row: dict[str, Any]) -> dict[str, Any]:
        if len(prompt_ids(job.tokenizer, row["prompt"])) + generated > spec.max_length:
            raise RowRefusedError("prompt_too_long")
        return {"prompt": messages(row["prompt"]), "answer": row["answer"]}

    rows = job.each(encode)
    settings = job.arguments(
        beta=given["beta"],
        num_generations=group_size(given["batch_size"] * given["gradient_accumulation"]),
        max_completion_length=generated,
        reward_weights=[1.0, 0.5],
        temperature=1.0,
    )
    model = load_model(spec.model_path, dtype=spec["dtype"], tier=spec["hardware_tier"], train=True)
    return GRPOTrainer(
        model=model,
        reward_funcs=[exact_match, contains],
        args=GRPOConfig(**settings),
        train_dataset=Dataset.from_list(rows),
        processing_class=job.tokenizer,
        peft_config=job.lora(),
    )


if __name__ == "__main__":
    sys.exit(run("trl-grpo", "grpo", ("prompt", "answer"), build))
