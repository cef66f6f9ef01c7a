"""How likely a model finds given responses."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import log_softmax

from harness.training.chat import Turn
from harness.training.evaluators.program import batches


def mean_logps(model: Any, turns: Sequence[Turn], pad: int) -> list[float]:
    """Of each response: the mean natural logarithm of the probability of a token, EOS included,
    after its prompt.

    Padding stands at the right and is masked, so that it changes no number beyond rounding. Order
    as given; inside, rows of like length are computed together.
    """
    order = sorted(range(len(turns)), key=lambda index: len(turns[index].ids))
    found = [0.0] * len(turns)
    for some in batches(order):
        for index, value in zip(
            some, _batch(model, [turns[index] for index in some], pad), strict=True
        ):
            found[index] = value
    return found


def _batch(model: Any, turns: Sequence[Turn], pad: int) -> list[float]:
    longest = max(len(one.ids) for one in turns)
    ids = torch.full((len(turns), longest), pad)
    mask, wanted = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, one in enumerate(turns):
        end = len(one.ids)
        ids[row, :end] = torch.tensor(one.ids)
        mask[row, :end] = 1
        wanted[row, len(one.prompt) : end] = 1
    ids, mask, wanted = (tensor.to(model.device) for tensor in (ids, mask, wanted))
    first = max(
        0, min(len(one.prompt) for one in turns) - 1
    )  # nothing before it predicts a response
    with torch.inference_mode():
        logits = model(
            input_ids=ids, attention_mask=mask, use_cache=False, logits_to_keep=longest - first
        ).logits
        later = ids[:, first + 1 :, None]
        logps = log_softmax(logits[:, :-1].float(), dim=-1).gather(-1, later).squeeze(-1)
    counted = wanted[:, first + 1 :]
    means = (logps * counted).sum(-1) / counted.sum(-1)
    return [float(value) for value in means]
