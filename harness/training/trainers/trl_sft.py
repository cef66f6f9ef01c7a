"""Backend `trl-sft`: supervised fine-tuning by TRL, with LoRA; the response's tokens, EOS included,
are learned."""

import sys
from typing import Any

from datasets import Dataset
from trl import (
    SFTConfig,
    SFTTrainer,
)

from harness.errors import UsageError
from harness.training.chat import Response, turn
from harness.training.collators import sft_row
from harness.training.trainers.program import run
from harness.training.trainers.task import TrainingTask


class TokensSFTTrainer(SFTTrainer):  # type: ignore[misc] # the library is not followed
    """SFT over tokens that were made by `sft_row`."""

    def _prepare_dataset(self, dataset: Any, *_more: Any, **_named: Any) -> Any:
        return dataset


def completion(row: dict[str, Any]) -> Response:
    """Raises UsageError for a row that has neither `completion` nor `chosen`."""
    text = row.get("completion", row.get("chosen"))
    if not isinstance(text, str | list):
        raise UsageError(
            f"The row {row.get('id')} has neither completion nor chosen.",
            hint="Fix the dataset.",
            code="dataset_row",
        )
    return text


def build(task: TrainingTask) -> Any:
    limit = task.spec.max_length

    def encode(row: dict[str, Any]) -> dict[str, Any]:
        answered = turn(task.tokenizer, row["prompt"], completion(row), limit=limit)
        task.count_cut("completion", answered)
        return sft_row(answered)

    rows = task.each(encode)
    return TokensSFTTrainer(
        model=task.model(),
        args=SFTConfig(**task.arguments(max_length=limit)),
        train_dataset=Dataset.from_list(rows),
        processing_class=task.tokenizer,
        peft_config=task.lora(),
    )


if __name__ == "__main__":
    sys.exit(run("trl-sft", "sft", ("prompt",), build))
