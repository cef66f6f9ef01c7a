"""Backend `trl-sft`: supervised fine-tuning by TRL, with LoRA; the response's tokens, EOS included,
are learned."""

import sys
from typing import Any

from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from harness.errors import UsageError
from harness.training.chat import turn
from harness.training.language_model import load_model
from harness.training.trainers.job import Job
from harness.training.trainers.program import run


class TokensSFTTrainer(SFTTrainer):  # type: ignore[misc] # the library is not followed
    """SFT over rows that hold `input_ids` and `labels`."""

    def _prepare_dataset(self, dataset: Any, *_more: Any, **_named: Any) -> Any:
        return dataset


def completion(row: dict[str, Any]) -> str:
    """Raises UsageError for a row that has neither `completion` nor `chosen` as text."""
    found = row.get("completion", row.get("chosen"))
    if not isinstance(found, str):
        raise UsageError(
            f"The row {row.get('id')} has neither completion nor chosen.",
            hint="Fix the dataset.",
            code="dataset_row",
        )
    return found


def build(job: Job) -> Any:
    spec = job.spec

    def encode(row: dict[str, Any]) -> dict[str, Any]:
        said = turn(job.tokenizer, row["prompt"], completion(row), limit=spec.max_length)
        return {"input_ids": said.ids, "labels": said.labels}

    rows = job.each(encode)
    model = load_model(spec.model_path, dtype=spec["dtype"], tier=spec["hardware_tier"], train=True)
    return TokensSFTTrainer(
        model=model,
        args=SFTConfig(**job.arguments(max_length=spec.max_length)),
        train_dataset=Dataset.from_list(rows),
        processing_class=job.tokenizer,
        peft_config=job.lora(),
    )


if __name__ == "__main__":
    sys.exit(run("trl-sft", "sft", ("prompt",), build))
