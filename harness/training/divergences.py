"""Divergences between a student's and a teacher's distribution of the next token.

Pure torch, natural logarithm, float32 or wider. P is the teacher, Q the student; no gradient flows
into P. `Divergence` gives one number a token and its gradient with respect to the student's logits;
`distillation_loss` applies it to hidden states by chunks, so that no two full tensors of logits
exist at a time.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
import torch.nn.functional as F

from harness.domain.composition import Objective

_CHUNK = 2**26
"""Logits a chunk: 256 MiB in float32."""
_FUSED_BYTES = 7 * 2**27
"""Of both logits of a chunk, where the gradient is written over the student's."""
_TILE = 128
"""Rows of a matrix product that a GPU computes at a time."""
_FURTHEST = 20.0
"""Of a log ratio, before its exponential (lasgroup/SDPO)."""
_FULL_TAIL = -1e-7
"""Largest log mass of the kept words, so that the tail's logarithm is finite."""

Graded = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """D(P, Q) of one position, from logits of shape (tokens, vocabulary).

    `full` is the generalized Jensen-Shannon divergence, equation 1 of Agarwal et al. 2023
    (On-Policy Distillation of Language Models, arXiv 2306.13649), at both ends a KL divergence:

        beta = 0:  KL(P || Q)     beta = 1:  KL(Q || P)
        else:      beta KL(P || M) + (1 - beta) KL(Q || M),   M = beta P + (1 - beta) Q

    It goes to 0 with beta; only divided by beta it goes to KL(P || Q). `clip` bounds what a single
    word adds, from above (OPSD, Zhao et al. 2026, arXiv 2601.18734).

    `top_k` is the same over the student's `top_k` likeliest words, with one more that stands for
    the rest (`tail`), else renormalized. `sampled` is sg(log Q(y) - log P(y)) log Q(y) of the token
    y that was drawn: its gradient is KL(Q || P)'s in expectation over y. Both are of SDPO (Hübotter
    et al. 2026, arXiv 2601.20802).
    """

    objective: str = Objective.FULL
    beta: float = 0.5
    temperature: float = 1.0
    clip: float | None = None
    top_k: int = 100
    tail: bool = True

    def values(
        self, student: torch.Tensor, teacher: torch.Tensor, tokens: torch.Tensor
    ) -> torch.Tensor:
        """Shape (tokens,); differentiable in `student`. `tokens` (tokens,): the ids drawn."""
        student, teacher = student / self.temperature, teacher.detach() / self.temperature
        if self.objective == Objective.SAMPLED:
            return sampled_token(student, teacher, tokens)
        if self.objective == Objective.TOP_K:
            pair = student_top_k(student, teacher, self.top_k, tail=self.tail)
        else:
            pair = F.log_softmax(student, -1), F.log_softmax(teacher, -1)
        return jensen_shannon(*pair, self.beta, clip=self.clip)

    def graded(
        self,
        student: torch.Tensor,
        teacher: torch.Tensor,
        tokens: torch.Tensor,
        weights: torch.Tensor,
    ) -> Graded:
        """(sum of weights * values, its gradient in `student`), shapes () and (tokens, vocabulary).

        `weights` (tokens,) carry mask, mean and ratio. Nothing is kept for a later backward pass.
        """
        if self.objective != Objective.FULL:
            with torch.enable_grad():
                leaf = student.detach().requires_grad_()
                loss = (self.values(leaf, teacher, tokens) * weights).sum()
                (gradient,) = torch.autograd.grad(loss, leaf)
            return loss.detach(), gradient
        return graded_jensen_shannon(
            student, teacher, weights, self.beta, self.temperature, self.clip
        )


def jensen_shannon(
    student: torch.Tensor, teacher: torch.Tensor, beta: float, *, clip: float | None = None
) -> torch.Tensor:
    """The generalized Jensen-Shannon divergence of two tensors of log-probabilities, summed over
    the last dimension."""
    if beta == 0:
        parts = teacher.exp() * (teacher - student)
    elif beta == 1:
        parts = student.exp() * (student - teacher)
    else:
        middle = _mixture(student, teacher, beta)
        parts = beta * teacher.exp() * (teacher - middle)
        parts = parts + (1 - beta) * student.exp() * (student - middle)
    return (parts if clip is None else parts.clamp(max=clip)).sum(-1)


def _mixture(student: torch.Tensor, teacher: torch.Tensor, beta: float) -> torch.Tensor:
    return torch.logaddexp(teacher + math.log(beta), student + math.log1p(-beta))


def graded_jensen_shannon(
    student: torch.Tensor,
    teacher: torch.Tensor,
    weights: torch.Tensor,
    beta: float,
    temperature: float,
    clip: float | None,
) -> Graded:
    """As `Divergence.graded`. With f_v the part of word v and g_v = df_v / dlog Q(v), the gradient
    in the student's logits is (g - Q sum(g)) / temperature, where

        beta = 0:  g = -P     beta = 1:  g = f + Q     else:  g = (1 - beta) Q (log Q - log M)
    """
    log_q = F.log_softmax(student / temperature, -1)
    log_p = F.log_softmax(teacher / temperature, -1)
    q, p = log_q.exp(), log_p.exp()
    if beta == 0:
        parts, slope = p * (log_p - log_q), -p
    elif beta == 1:
        parts = q * (log_q - log_p)
        slope = parts + q
    else:
        middle = _mixture(log_q, log_p, beta)
        slope = (1 - beta) * q * (log_q - middle)
        parts = beta * p * (log_p - middle) + slope
    if clip is not None:
        slope = slope * (parts <= clip)
        parts = parts.clamp(max=clip)
    gradient = (slope - q * slope.sum(-1, keepdim=True)) * (weights / temperature).unsqueeze(-1)
    return (parts.sum(-1) * weights).sum(), gradient


def student_top_k(
    student: torch.Tensor, teacher: torch.Tensor, k: int, *, tail: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of the student's k likeliest words under student and teacher, shape
    (..., k) or, with the rest as one more word, (..., k + 1)."""
    kept = student.topk(min(k, student.shape[-1]), dim=-1).indices
    pair = []
    for logits in (student, teacher):
        logps = F.log_softmax(logits, -1).gather(-1, kept)
        mass = logps.logsumexp(-1, keepdim=True)
        if not tail:
            pair.append(logps - mass)
        elif kept.shape[-1] == student.shape[-1]:
            pair.append(logps)  # nothing is left
        else:
            rest = torch.log(-torch.expm1(mass.clamp(max=_FULL_TAIL)))
            pair.append(torch.cat([logps, rest], -1))
    return pair[0], pair[1]


def sampled_token(
    student: torch.Tensor, teacher: torch.Tensor, tokens: torch.Tensor
) -> torch.Tensor:
    """sg(log Q(y) - log P(y)) * log Q(y), shape (tokens,)."""
    at = tokens.unsqueeze(-1)
    log_q = F.log_softmax(student, -1).gather(-1, at).squeeze(-1)
    log_p = F.log_softmax(teacher, -1).gather(-1, at).squeeze(-1)
    return (log_q - log_p).detach() * log_q


def capped_ratio(now: torch.Tensor, then: torch.Tensor, cap: float) -> torch.Tensor:
    """min(cap, pi_now(y) / pi_then(y)) of log-probabilities, without gradient: corrects for tokens
    that an earlier student drew (SDPO)."""
    return (now - then).detach().clamp(-_FURTHEST, _FURTHEST).exp().clamp(max=cap)


Written = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], Graded]
"""(student's logits, teacher's, tokens, weights) -> (loss, gradient in the student's logits)."""


def graded_form(divergence: Divergence) -> Written:
    """By torch, in float32 or wider."""

    def graded(
        student: torch.Tensor, teacher: torch.Tensor, tokens: torch.Tensor, weights: torch.Tensor
    ) -> Graded:
        wide = torch.promote_types(student.dtype, torch.float32)
        return divergence.graded(student.to(wide), teacher.to(wide), tokens, weights.to(wide))

    return graded


def fused_form(divergence: Divergence, head: torch.Tensor) -> Written | None:
    """By Triton, where it is there and has this divergence."""
    if not head.is_cuda or divergence.objective == Objective.SAMPLED:
        return None
    if find_spec("triton") is None:
        return None
    fused = import_module("harness.training.fused_divergence")
    fused_top_k = import_module("harness.training.fused_top_k")
    if divergence.objective == Objective.TOP_K and divergence.top_k > fused_top_k.MOST_KEPT:
        return None
    shared: dict[str, Any] = {
        "beta": divergence.beta,
        "temperature": divergence.temperature,
        "clip": divergence.clip,
    }

    def written(
        student: torch.Tensor, teacher: torch.Tensor, tokens: torch.Tensor, weights: torch.Tensor
    ) -> Graded:
        given = student, teacher, weights.float()
        shared["kind"] = min(head.dtype, student.dtype, key=lambda one: one.itemsize)
        if divergence.objective == Objective.TOP_K and divergence.top_k < student.shape[-1]:
            kept: dict[str, Any] = {"k": divergence.top_k, "tail": divergence.tail}
            graded: Graded = fused_top_k.write_top_k_gradient(*given, **kept, **shared)
        else:
            graded = fused.write_gradient(*given, **shared)
        return graded

    return written


def logits_of(hidden: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
    """hidden @ head.T in float32 or wider. A GPU adds up products of bfloat16 in float32: rounded
    once more, a logit of 4 is off by 0.008, a gradient of the head by 2%, and other words are among
    the likeliest."""
    if head.is_cuda and head.dtype in (torch.bfloat16, torch.float16):
        wide: torch.Tensor = torch.mm(hidden.to(head.dtype), head.T, out_dtype=torch.float32)
        return wide
    return hidden @ head.T


def distillation_loss(
    student: tuple[torch.Tensor, torch.Tensor],
    teacher: tuple[torch.Tensor, torch.Tensor],
    tokens: torch.Tensor,
    weights: torch.Tensor,
    divergence: Divergence,
    *,
    chunk: int | None = None,
) -> torch.Tensor:
    """sum_t weights_t D(P_t, Q_t), shape (). `student` and `teacher` are (hidden states (tokens,
    width), output head (vocabulary, width)).

    The gradient is made in the forward pass, chunk by chunk: what is kept is as large as the hidden
    states, and as the head where that learns. On a GPU it is written over the student's logits
    (fused_divergence.py, fused_top_k.py). `chunk`: tokens at a time.
    """
    fused = fused_form(divergence, student[1])
    if fused is None:
        most = chunk or max(1, _CHUNK // student[1].shape[0])
    else:
        most = chunk or max(1, _FUSED_BYTES // (8 * student[1].shape[0]))
    most = most - most % _TILE or most
    chunks = max(1, math.ceil(len(tokens) / most))
    size = math.ceil(len(tokens) / chunks)  # all of about the same size
    size = max(1, min(most, _TILE * math.ceil(size / _TILE)))
    return _Chunked.apply(  # type: ignore[no-any-return, no-untyped-call] # torch is not typed here
        *student, *teacher, tokens, weights, fused or graded_form(divergence), size
    )


class _Chunked(torch.autograd.Function):
    """The teacher's inputs have no gradient, by construction."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        head: torch.Tensor,
        teacher_hidden: torch.Tensor,
        teacher_head: torch.Tensor,
        tokens: torch.Tensor,
        weights: torch.Tensor,
        graded: Written,
        size: int,
    ) -> torch.Tensor:
        loss = hidden.new_zeros((), dtype=torch.promote_types(hidden.dtype, torch.float32))
        of_hidden = torch.empty_like(hidden)
        of_head = None
        for start in range(0, hidden.shape[0], size):
            here = slice(start, start + size)
            logits = logits_of(hidden[here], head)
            others = logits_of(teacher_hidden[here], teacher_head)
            part, gradient = graded(logits, others, tokens[here], weights[here])
            loss += part
            del logits, others
            gradient = gradient.to(head.dtype)
            of_hidden[here] = gradient @ head
            if of_head is not None:
                of_head.addmm_(gradient.T, hidden[here])
            elif ctx.needs_input_grad[1]:
                of_head = gradient.T @ hidden[here]
            del gradient
        ctx.save_for_backward(of_hidden, of_head)
        return loss

    @staticmethod
    def backward(ctx: Any, *outer: torch.Tensor) -> tuple[Any, ...]:
        of_hidden, of_head = ctx.saved_tensors
        (scale,) = outer
        nothing = (None,) * 6
        if scale == 1:  # a second head's gradient would double what is held
            return of_hidden, of_head, *nothing
        return of_hidden * scale, None if of_head is None else of_head * scale, *nothing
