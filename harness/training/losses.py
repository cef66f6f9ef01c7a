"""Losses of the trainers, and the log-probabilities that they and the evaluators stand on.

Pure torch, natural logarithm, computed in float32. DPO, SFT and GRPO use TRL's own losses; what is
checked or replaced of them is here.
"""

import math

import torch
import torch.nn.functional as F

from harness.errors import RunError

IGNORED = -100
"""Label of a token that nothing is learned from: of the prompt, or padding."""
DPO_AT_START = math.log(2)
"""The DPO loss -log(sigmoid(beta * margin)) while policy and reference are the same model: the
margin is then 0 (equation 7 of Rafailov et al. 2023, Direct Preference Optimization)."""
START_TOLERANCE = 1e-3
_SURE = -1e-6
"""The largest mean log-probability that odds are computed for; at 0 they are infinite."""


def response_logps(
    logits: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(sum of the log-probabilities of the labelled tokens, their number), each of shape (rows,).

    `logits` (rows, length, vocabulary), `labels` (rows, length), IGNORED where nothing counts:

        sum_t [labels_t != IGNORED] * log softmax(logits_(t-1))[labels_t],   t = 1 ... length-1
    """
    # A token is predicted by the position before it.
    targets = labels[:, 1:]
    mask = targets != IGNORED
    picked = (
        F.log_softmax(logits[:, :-1].float(), dim=-1)
        .gather(-1, targets.clamp_min(0).unsqueeze(-1))  # IGNORED is no index; masked below
        .squeeze(-1)
    )
    return (picked * mask).sum(-1), mask.sum(-1)


def mean_nll(logps: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Negative log-likelihood of a token, mean over all tokens of all rows, shape ().

    `logps` (rows,) and `counts` (rows,) are those of `response_logps`: -sum(logps) / sum(counts).
    """
    return -logps.sum() / counts.sum()


def log_odds(logp: torch.Tensor) -> torch.Tensor:
    """log(p / (1 - p)) of p = exp(logp), for logp <= 0, any shape.

    Equation 4 of Hong, Lee and Thorne 2024 (ORPO: Monolithic Preference Optimization without
    Reference Model).
    """
    # 1 - exp(logp) cancels near logp = 0: expm1 keeps its digits. For a model that is sure, logp is
    # 0 in float32 and the odds are infinite, hence the clamp.
    safe = logp.clamp(max=_SURE)
    return safe - torch.log(-torch.expm1(safe))


def odds_ratio(chosen: torch.Tensor, rejected: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(log sigmoid of the log odds ratio, log odds ratio), each of shape (rows,).

    `chosen` and `rejected` (rows,) are mean log-probabilities of a token. Minus the first is the
    loss L_OR, equation 7 of the ORPO paper; the whole loss is NLL + beta * L_OR (equation 6).
    """
    ratio = log_odds(chosen.float()) - log_odds(rejected.float())
    return F.logsigmoid(ratio), ratio


def preference_margins(
    policy: torch.Tensor, reference: torch.Tensor, beta: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """(-log sigmoid(margin), margin), each of shape (pairs,).

    Equation 7 of Rafailov et al. 2023 (DPO): margin = beta ((log pi(y_w) - log ref(y_w)) - (log
    pi(y_l) - log ref(y_l))). `policy` and `reference` (2 * pairs,) are sums of log-probabilities of
    the responses, the chosen ones first; the reference has no gradient.
    """
    chosen, rejected = (policy - reference.detach()).chunk(2)
    margin = beta * (chosen - rejected)
    return -F.logsigmoid(margin), margin


def require_same_start(loss: float) -> None:
    """Raises RunError unless the first DPO loss is ln 2 within START_TOLERANCE."""
    if not abs(loss - DPO_AT_START) <= START_TOLERANCE:  # a NaN, too, is refused
        raise RunError(
            f"Before the first step the loss is {loss:.4f}; expected ln 2 = {DPO_AT_START:.4f}:"
            " policy and reference differ.",
            hint="Start from the model that is the reference: merge an earlier adapter into it.",
            code="reference_differs",
        )
