"""Backend `trl-orpo`: odds ratio preference optimisation (Hong, Lee and Thorne 2024) by TRL, with
LoRA.

Two differences from TRL's trainer, both on purpose: the negative log-likelihood is of the chosen
response's tokens alone, not of the prompt's; and it is finite for a model that is sure (a mean
log-probability of 0).
"""

import sys
from typing import Any

import torch
import torch.nn.functional as F
from datasets import Dataset
from trl.experimental.orpo import ORPOConfig, ORPOTrainer

from harness.training.chat import Turn, pair
from harness.training.language_model import load_model
from harness.training.trainers.job import Job
from harness.training.trainers.program import run

TEXTS = ("prompt", "chosen", "rejected")
"""What a row must hold."""
SURE = -1e-6
"""The largest mean log-probability of a token that odds are computed for; at 0 they are
infinite."""


class MaskedORPOTrainer(ORPOTrainer):  # type: ignore[misc] # the library is not followed
    """ORPO over tokens that were made by `preference_row`."""

    def tokenize_row(self, feature: dict[str, Any], model: Any = None) -> dict[str, Any]:
        return {}  # the rows hold tokens

    def concatenated_forward(self, model: Any, batch: dict[str, Any]) -> tuple[Any, ...]:
        """(chosen_logps, rejected_logps, chosen_logits, rejected_logits, nll): means over response
        tokens, natural log.

        Log-probabilities are computed in float32; shapes (rows,), (rows,), (rows, length,
        vocabulary) twice, ().
        """
        rows = self.concatenated_inputs(
            batch, padding_value=self.padding_value, device=self.accelerator.device
        )
        mask = rows["concatenated_attention_mask"]
        logits = model(
            input_ids=rows["concatenated_input_ids"], attention_mask=mask, use_cache=False
        ).logits
        logps, counted = response_logps(logits, rows["concatenated_labels"])
        means = logps / counted
        chosen = len(batch["chosen_labels"])
        nll = -logps[:chosen].sum() / counted[:chosen].sum()
        return means[:chosen], means[chosen:], logits[:chosen, :-1], logits[chosen:, :-1], nll

    def odds_ratio_loss(
        self, policy_chosen_logps: Any, policy_rejected_logps: Any
    ) -> tuple[Any, ...]:
        chosen, rejected = policy_chosen_logps.float(), policy_rejected_logps.float()
        odds = log_odds(chosen) - log_odds(rejected)
        ratio = F.logsigmoid(odds)
        rewards = (self.beta * chosen).detach(), (self.beta * rejected).detach()
        return self.beta * ratio, *rewards, ratio.mean(), odds.mean()


def response_logps(logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(sum of log-probabilities of the tokens whose label is not -100, how many), each of shape
    (rows,).

    `logits` (rows, length, vocabulary), `labels` (rows, length); a token is predicted by the
    position before it.
    """
    wanted = labels[:, 1:]
    mask = wanted != -100
    picked = (
        F.log_softmax(logits[:, :-1].float(), dim=-1)
        .gather(-1, wanted.clamp_min(0).unsqueeze(-1))
        .squeeze(-1)
    )
    return (picked * mask).sum(-1), mask.sum(-1)


def log_odds(logp: torch.Tensor) -> torch.Tensor:
    """log(p / (1 - p)) of p = exp(logp), for logp <= 0 in float32; equations 4 and 7 of the paper
    without overflow."""
    safe = logp.clamp(max=SURE)
    return safe - torch.log(-torch.expm1(safe))


def preference_row(chosen: Turn, rejected: Turn) -> dict[str, Any]:
    """The columns that TRL's collator of preference pairs pads."""
    found: dict[str, Any] = {}
    for name, one in (("chosen", chosen), ("rejected", rejected)):
        found |= {
            f"{name}_input_ids": one.ids,
            f"{name}_attention_mask": [1] * len(one.ids),
            f"{name}_labels": one.labels,
        }
    return found


def trainer_of(job: Job, model: Any, adapter: Any) -> Any:
    """The trainer of `model`; `adapter` is the LoRA that it is to get, None where it has one."""
    spec = job.spec

    def encode(row: dict[str, Any]) -> dict[str, Any]:
        said = row["prompt"], row["chosen"], row["rejected"]
        return preference_row(*pair(job.tokenizer, *said, limit=spec.max_length))

    rows = job.each(encode)
    settings = job.arguments(
        beta=spec.hyperparameters["beta"],
        max_length=spec.max_length,
        remove_unused_columns=False,
        disable_dropout=False,  # the adapter's is in the specification
    )
    return MaskedORPOTrainer(
        model=model,
        args=ORPOConfig(**settings),
        train_dataset=Dataset.from_list(rows),
        processing_class=job.tokenizer,
        peft_config=adapter,
    )


def build(job: Job) -> Any:
    spec = job.spec
    model = load_model(spec.model_path, dtype=spec["dtype"], tier=spec["hardware_tier"], train=True)
    return trainer_of(job, model, job.lora())


if __name__ == "__main__":
    sys.exit(run("trl-orpo", "orpo", TEXTS, build))
