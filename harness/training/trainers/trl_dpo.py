"""Backend `trl-dpo`: direct preference optimisation (Rafailov et al. 2023) by TRL, with LoRA.

The reference is the base model, the adapter off. Before the first step policy and reference must be
the same: a first loss that is not ln 2 is refused.
"""

import math
import sys
from typing import Any

from datasets import Dataset
from trl import DPOConfig, DPOTrainer

from harness.errors import RunError
from harness.training.chat import pair
from harness.training.language_model import load_model
from harness.training.trainers.job import Job
from harness.training.trainers.program import run

TOLERANCE = 1e-3


class CheckedDPOTrainer(DPOTrainer):  # type: ignore[misc] # the library is not followed
    """DPO over rows that hold tokens: `prompt_ids`, `chosen_ids`, `rejected_ids`."""

    def _prepare_dataset(self, dataset: Any, *_more: Any, **_named: Any) -> Any:
        return dataset

    def compute_loss(self, model: Any, inputs: Any, *more: Any, **named: Any) -> Any:
        found = super().compute_loss(model, inputs, *more, **named)
        if self.state.global_step == 0 and not getattr(self, "_compared", False):
            self._compared = True
            require_same_start(float((found[0] if isinstance(found, tuple) else found).detach()))
        return found


def require_same_start(loss: float) -> None:
    """Raises RunError unless the loss is ln 2 within 0.001: what it is while policy and reference
    agree."""
    if not abs(loss - math.log(2)) <= TOLERANCE:
        raise RunError(
            f"Before the first step the loss is {loss:.4f}; expected ln 2 = {math.log(2):.4f}:"
            " policy and reference differ.",
            hint="Start from the model that is the reference: merge an earlier adapter into it.",
            code="reference_differs",
        )


def build(job: Job) -> Any:
    spec = job.spec

    def encode(row: dict[str, Any]) -> dict[str, Any]:
        said = row["prompt"], row["chosen"], row["rejected"]
        chosen, rejected = pair(job.tokenizer, *said, limit=spec.max_length)
        return {
            "prompt_ids": chosen.prompt,
            "chosen_ids": chosen.response,
            "rejected_ids": rejected.response,
        }

    rows = job.each(encode)
    settings = job.arguments(
        beta=spec.hyperparameters["beta"], max_length=spec.max_length, disable_dropout=False
    )
    model = load_model(spec.model_path, dtype=spec["dtype"], tier=spec["hardware_tier"], train=True)
    return CheckedDPOTrainer(
        model=model,
        args=DPOConfig(**settings),
        train_dataset=Dataset.from_list(rows),
        processing_class=job.tokenizer,
        peft_config=job.lora(),
    )


if __name__ == "__main__":
    sys.exit(run("trl-dpo", "dpo", ("prompt", "chosen", "rejected"), build))
