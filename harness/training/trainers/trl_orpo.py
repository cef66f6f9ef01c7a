"""Backend `trl-orpo`: odds ratio preference optimisation (Hong, Lee and Thorne 2024) by TRL, with
LoRA.

Two intended differences from TRL's trainer: the negative log-likelihood is of the chosen response's
tokens alone, not of the prompt's; and it is finite for a model that is sure (a mean log-probability
of 0).
"""

import sys
from typing import Any

from datasets import Dataset
from trl.experimental.orpo import (
    ORPOConfig,
    ORPOTrainer,
)
from trl.trainer.utils import add_fused_lm_head

from harness.training.collators import orpo_row
from harness.training.losses import (
    IGNORED,
    mean_nll,
    odds_ratio,
)
from harness.training.trainers.program import run
from harness.training.trainers.task import TrainingTask

TEXTS = ("prompt", "chosen", "rejected")
"""What a row must hold."""


class MaskedORPOTrainer(ORPOTrainer):  # type: ignore[misc] # the library is not followed
    """ORPO over tokens that were made by `orpo_row`."""

    def tokenize_row(self, feature: dict[str, Any], model: Any = None) -> dict[str, Any]:
        return {}  # the rows hold tokens

    def concatenated_forward(self, model: Any, batch: dict[str, Any]) -> tuple[Any, ...]:
        """(chosen_logps, rejected_logps, chosen_logits, rejected_logits, nll).

        Log-probabilities are means over response tokens, made in the head without a tensor of all
        logits; of these only the mean of each response token is told. Shapes: (rows,), (rows,),
        (tokens,) twice, ().
        """
        rows = self.concatenated_inputs(
            batch, padding_value=self.padding_value, device=self.accelerator.device
        )
        labels = rows["concatenated_labels"]
        out = model(
            input_ids=rows["concatenated_input_ids"],
            attention_mask=rows["concatenated_attention_mask"],
            labels=labels,
            fused_lm_head=True,
        )
        logps, mask = out.log_probs.float().sum(-1), labels[:, 1:] != IGNORED
        counts = mask.sum(-1)
        means = logps / counts
        chosen = len(batch["chosen_labels"])  # the first half of the rows
        nll = mean_nll(logps[:chosen], counts[:chosen])
        logits = [
            out.mean_logits[half][mask[half]] for half in (slice(chosen), slice(chosen, None))
        ]
        return means[:chosen], means[chosen:], *logits, nll

    def odds_ratio_loss(
        self, policy_chosen_logps: Any, policy_rejected_logps: Any
    ) -> tuple[Any, ...]:
        chosen, rejected = policy_chosen_logps.float(), policy_rejected_logps.float()
        log_sigmoid, ratio = odds_ratio(chosen, rejected)
        rewards = (self.beta * chosen).detach(), (self.beta * rejected).detach()
        return self.beta * log_sigmoid, *rewards, log_sigmoid.mean(), ratio.mean()


def build(task: TrainingTask) -> Any:
    rows, model = task.pairs(orpo_row), task.model()
    add_fused_lm_head(model, outputs=("log_probs", "mean_logits"))
    settings = task.arguments(
        beta=task.spec.hyperparameters["beta"],
        max_length=task.spec.max_length,
        remove_unused_columns=False,
        disable_dropout=False,  # the adapter's is in the specification
    )
    return MaskedORPOTrainer(
        model=model,
        args=ORPOConfig(**settings),
        train_dataset=Dataset.from_list(rows),
        processing_class=task.tokenizer,
        peft_config=task.lora(),
    )


if __name__ == "__main__":
    sys.exit(run("trl-orpo", "orpo", TEXTS, build))
