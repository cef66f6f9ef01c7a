"""Turns as the rows and batches that trainers and evaluators compute on.

The rows of a trainer are padded by its TRL trainer's own collator, which asks for these columns.
The batches of the evaluators are padded here. A mask says what is padding, never the token itself:
it may be EOS.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from harness.training.chat import ChatTurn
from harness.training.losses import IGNORED


def sft_row(turn: ChatTurn) -> dict[str, Any]:
    """Columns of TRL's DataCollatorForLanguageModeling: nothing is learned from the prompt."""
    return {"input_ids": turn.ids, "labels": labels(turn)}


def dpo_row(chosen: ChatTurn, rejected: ChatTurn) -> dict[str, Any]:
    """Columns of TRL's DataCollatorForPreference: both turns have one prompt."""
    return {
        "prompt_ids": chosen.prompt,
        "chosen_ids": chosen.response,
        "rejected_ids": rejected.response,
    }


def orpo_row(chosen: ChatTurn, rejected: ChatTurn) -> dict[str, Any]:
    """Columns of TRL's DPODataCollatorWithPadding, in which each turn stands whole."""
    row: dict[str, Any] = {}
    for name, turn in (("chosen", chosen), ("rejected", rejected)):
        row |= {
            f"{name}_input_ids": turn.ids,
            f"{name}_attention_mask": [1] * len(turn.ids),
            f"{name}_labels": labels(turn),
        }
    return row


def labels(turn: ChatTurn) -> list[int]:
    """`turn.ids` with IGNORED in place of the prompt."""
    return [IGNORED] * len(turn.prompt) + turn.response


def pad_turns(
    turns: Sequence[ChatTurn], pad: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(token ids, attention mask, labels), each of shape (turns, longest), padded at the right."""
    longest = max(len(turn.ids) for turn in turns)
    ids = torch.full((len(turns), longest), pad)
    mask, targets = torch.zeros_like(ids), torch.full_like(ids, IGNORED)
    for row, turn in enumerate(turns):
        end = len(turn.ids)
        ids[row, :end] = torch.tensor(turn.ids)
        mask[row, :end] = 1
        targets[row, :end] = torch.tensor(labels(turn))
    return ids, mask, targets


def pad_prompts(prompts: Sequence[list[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(token ids, attention mask), each of shape (prompts, longest), padded at the left: what is
    generated follows the prompt directly."""
    longest = max(map(len, prompts))
    missing = [longest - len(prompt) for prompt in prompts]
    ids = [[pad] * gap + prompt for gap, prompt in zip(missing, prompts, strict=True)]
    mask = [[0] * gap + [1] * (longest - gap) for gap in missing]
    return torch.tensor(ids), torch.tensor(mask)


def before_completions(
    prompts: Sequence[list[int]],
    completions: tuple[torch.Tensor, torch.Tensor],
    pad: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(token ids, attention mask), each of shape (rows, longest prompt + completions' length).

    `completions` are (ids, mask), padded at the right. Prompts are padded at the left, so under
    every prompt the last columns are the same tokens, one for one: position -1 - j predicts the
    completion's token -j, whatever comes before it.
    """
    ids, mask = pad_prompts(prompts, pad)
    device = completions[0].device
    return (
        torch.cat([ids.to(device), completions[0]], 1),
        torch.cat([mask.to(device), completions[1]], 1),
    )


def rows_taught(inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Mask (rows,) of those with something to teach; where there is none the first, whose tokens
    have no weight: what another process computes this one must, too."""
    rows: torch.Tensor = inputs["taught"] > 0
    rows[0] |= ~rows.any()
    return rows


def learned(inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Mask of the completions' tokens that the model wrote, shape (rows, completion): not of what
    tools returned."""
    mask: torch.Tensor = inputs["completion_mask"]
    return mask * inputs["tool_mask"] if "tool_mask" in inputs else mask


def predicting(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Of states (rows, length, width) those that predict the completions' tokens, which are the
    last columns: (tokens, width), in the order of `mask` (rows, completion)."""
    return states[:, -mask.shape[1] - 1 : -1][mask.bool()]
