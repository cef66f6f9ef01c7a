"""Backend `trl-dpo`: direct preference optimisation (Rafailov et al. 2023) by TRL, with LoRA.

The reference is the base model, the adapter off. Before the first step policy and reference must be
the same: a first loss that is not ln 2 is refused.
"""

import sys
from typing import Any

from datasets import Dataset
from trl import (
    DPOConfig,
    DPOTrainer,
)

from harness.training.collators import dpo_row
from harness.training.losses import require_same_start
from harness.training.trainers.program import run
from harness.training.trainers.task import TrainingTask


class CheckedDPOTrainer(DPOTrainer):  # type: ignore[misc] # the library is not followed
    """DPO over tokens that were made by `dpo_row`."""

    def _prepare_dataset(self, dataset: Any, *_more: Any, **_named: Any) -> Any:
        return dataset

    def compute_loss(self, model: Any, inputs: Any, *more: Any, **named: Any) -> Any:
        loss = super().compute_loss(model, inputs, *more, **named)
        if self.state.global_step == 0 and not getattr(self, "_compared", False):
            self._compared = True
            require_same_start(float((loss[0] if isinstance(loss, tuple) else loss).detach()))
        return loss


def build(task: TrainingTask) -> Any:
    rows = task.pairs(dpo_row)
    settings = task.arguments(
        beta=task.spec.hyperparameters["beta"],
        max_length=task.spec.max_length,
        disable_dropout=False,  # the adapter's is in the specification
    )
    return CheckedDPOTrainer(
        model=task.model(),
        args=DPOConfig(**settings),
        train_dataset=Dataset.from_list(rows),
        processing_class=task.tokenizer,
        peft_config=task.lora(),
    )


if __name__ == "__main__":
    sys.exit(run("trl-dpo", "dpo", ("prompt", "chosen", "rejected"), build))
